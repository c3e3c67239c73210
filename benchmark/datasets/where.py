"""Where a published dataset lies on this machine, when nobody says so.

A study names no folders, so that a specification means the same on every machine: what is left out is looked for
below ``$BENCHMARK_DATA``, or below ``data`` in the current folder.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VARIABLE = "BENCHMARK_DATA"
FOLDER = "data"


def data_folder() -> Path:
    """Returns the folder that holds one folder for each published dataset."""
    return Path(os.environ.get(VARIABLE) or FOLDER)


def with_roots(name: str, loader: type, params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns ``params`` with the roots that they leave out or null, for a loader of a published dataset.

    ``root`` is the folder named like the dataset; ``landmarks_root`` the folder of them all. Loaders without
    archives (your own folders) keep their parameters: only their owner knows where they lie.
    """
    known = {item.name for item in dataclasses.fields(loader.Config)}
    usual = {"root": data_folder() / name, "landmarks_root": data_folder()}
    if not loader.archives:
        return dict(params)
    filled = {key: str(path) for key, path in usual.items() if key in known and params.get(key) is None}
    return {**params, **filled}
