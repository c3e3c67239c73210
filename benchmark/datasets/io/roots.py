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
    """Say whether a path that an archive provides lies below the root: a folder if it ends in "/".

    False, too, where the file system does not let us look.
    """
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
    roots = [folder for folder in _nearby(root) if all(is_there(folder, path) for path in needed)]
    if roots:
        findings.add(f"this is not the dataset's root, but {roots[0]} is; give it as root")
    elif not os.path.isdir(root):
        findings.add("no such directory; give the directory that the dataset was unpacked into")
    elif not os.access(root, os.R_OK | os.X_OK):
        findings.add("the directory may not be read; make it readable, or give another one as root")
    else:
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
            listings[folder] = _listing(findings, folder)
        if name not in listings[folder]:
            missing.append(path)
    findings.add_all(f"images missing (of {len(paths):,})", missing, "unpack the archive again")


def file_sizes(findings: Findings, paths: Sequence[str]) -> np.ndarray:
    """Return the sizes in bytes of files below the root; report missing and empty ones."""
    sizes = [_size(findings.root / path) for path in paths]
    wrong = [
        f"{path} ({'missing' if size is None else 'empty'})"
        for path, size in zip(paths, sizes, strict=True)
        if not size
    ]
    findings.add_all(f"images that cannot be used (of {len(paths):,})", wrong, "replace them")
    return np.array([size or 0 for size in sizes], dtype=np.int64)


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _listing(findings: Findings, folder: str) -> set[str]:
    try:
        return set(os.listdir(findings.root / folder))
    except (FileNotFoundError, NotADirectoryError):
        return set()
    except OSError as error:
        findings.add(f"cannot list {folder}: {error.strerror}; make it readable")
        return set()


def _nearby(root: Path) -> list[Path]:
    """Return the directories one level down and one up."""
    try:
        with os.scandir(root) as entries:
            below = sorted(root / entry.name for entry in entries if entry.is_dir())
    except (OSError, ValueError):  # ValueError: its name holds a NUL
        below = []
    return [*below, Path(os.path.abspath(root)).parent]
