"""Where a published dataset lies on this machine, when nobody says so.

A study names no folders, so that a specification means the same on every machine: what is left out is looked for
below ``$BENCHMARK_DATA``, or below ``data`` in the current folder.
"""

from __future__ import annotations

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
    """Returns ``params`` with the root when they leave it out or null, for a loader of a published dataset.

    It is the folder named like the dataset. Loaders without archives (your own folders) keep their parameters:
    only their owner knows where they lie.
    """
    if not loader.archives or params.get("root") is not None:
        return dict(params)
    return {**params, "root": str(data_folder() / name)}
