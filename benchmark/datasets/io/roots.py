"""The root of a dataset: where it lies by default, and whether its files are there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmark.core.environment import DATA
from benchmark.datasets.io.findings import Findings

if TYPE_CHECKING:
    from benchmark.datasets.base import Archive, DatasetLoader


def with_root(name: str, loader: type[DatasetLoader], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``params`` with the default root of a published dataset, where they give none.

    It is ``$BENCHMARK_DATA/<name>``, by default ``data/<name>``: a study names no folders, so that
    its specifications mean the same on every machine. Your own folders have no default.
    """
    if not loader.archives or params.get("root") is not None:
        return dict(params)
    return {**params, "root": str(Path(DATA.value() or DATA.default) / name)}


def is_there(root: Path, provided: str) -> bool:
    """Say whether what an archive provides lies below the root: a folder if it ends in "/"."""
    path = os.path.join(root, provided)
    return os.path.isdir(path) if provided.endswith("/") else os.path.isfile(path)


def check_root(findings: Findings, archives: Sequence[Archive], *, images: bool = True) -> None:
    """Raise DataError unless everything that the archives provide lies below the root.

    ``images``: whether the folders of images are needed too.
    """
    root = findings.root
    needed = {
        path: archive.file
        for archive in archives
        for path in archive.provides
        if images or not path.endswith("/")
    }
    missing = [path for path in needed if not is_there(root, path)]
    if not missing:
        return
    below = sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    nearby = [*below, Path(os.path.abspath(root)).parent]
    roots = [folder for folder in nearby if all(is_there(folder, path) for path in needed)]
    if roots:
        findings.fail(f"this is not the dataset's root, but {roots[0]} is; give it as root")
    if not root.is_dir():
        findings.fail("no such directory; give the directory that the dataset was unpacked into")
    state = "only partly unpacked" if len(missing) < len(needed) else "not the dataset's root"
    findings.add_all(
        f"files and folders missing (of {len(needed)}, {state})",
        [f"{path} (of {needed[path]})" for path in missing],
        f"'python -m benchmark data prepare {findings.dataset} --source ARCHIVE --root {root}' "
        "unpacks them",
    )
    findings.stop()


def check_images(findings: Findings, paths: Sequence[str]) -> None:
    """Report the paths (relative to the root, with "/") without a file.

    Each folder is listed once instead of asking for each file: 460,000 images on a network file
    system would take minutes.
    """
    listings: dict[str, set[str]] = {}
    missing = []
    for path in paths:
        folder, _, name = path.rpartition("/")
        if folder not in listings:
            there = findings.root / folder
            listings[folder] = set(os.listdir(there)) if there.is_dir() else set()
        if name not in listings[folder]:
            missing.append(path)
    findings.add_all(f"images missing (of {len(paths):,})", missing, "unpack the archive again")


def file_sizes(findings: Findings, paths: Sequence[str]) -> np.ndarray:
    """Return the sizes in bytes of files below the root; report missing and empty ones."""
    files = [findings.root / path for path in paths]
    sizes = [file.stat().st_size if file.is_file() else 0 for file in files]
    wrong = [
        f"{path} ({'empty' if file.is_file() else 'missing'})"
        for path, file, size in zip(paths, files, sizes, strict=True)
        if not size
    ]
    findings.add_all(f"images that cannot be used (of {len(paths):,})", wrong, "replace them")
    return np.array(sizes, dtype=np.int64)
