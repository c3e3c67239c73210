"""Whether a directory is the root of an unpacked dataset, and which one near it is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from benchmark.datasets.base import Archive
from benchmark.datasets.io.findings import Findings


def check_root(findings: Findings, archives: Sequence[Archive], *, images: bool = True) -> None:
    """Raises DataError unless everything that proves a dataset unpacked lies in the root.

    ``images``: whether the folders of images are needed too.
    """
    root = findings.root
    needed = {
        proof: archive.file
        for archive in archives
        for proof in archive.proves
        if images or proof[-1:] != "/"
    }
    missing = [proof for proof in needed if not _there(root / proof, proof)]
    if not missing:
        return
    right = [
        folder for folder in _nearby(root) if all(_there(folder / proof, proof) for proof in needed)
    ]
    if right:
        findings.add(f"this is not the dataset's root, but {right[0]} is; give it as root")
    elif os.path.isdir(root) and not os.access(root, os.R_OK | os.X_OK):
        findings.add("the directory may not be read; make it readable, or give another one as root")
    elif not os.path.isdir(root):
        findings.add(
            "no such directory; give the directory that the dataset was unpacked into as root"
        )
    else:
        prepare = f"'python -m benchmark data prepare {findings.dataset} --source ARCHIVE --root {root}' unpacks them"
        half = "only partly unpacked" if len(missing) < len(needed) else "not the dataset's root"
        findings.add_all(
            f"of {len(needed)} files and folders are missing: {half}",
            [f"{proof} (of {needed[proof]})" for proof in missing],
            prepare,
        )
    findings.stop()


def missing_files(findings: Findings, paths: Sequence[str]) -> list[str]:
    """Returns the paths (relative to the root, with "/") without a file, by listing each folder once.

    One listing per folder, not one query per file: 460,000 images on a network file system would take minutes.
    Folders that cannot be listed for another reason than being absent are added to the findings.
    """
    present: dict[str, set[str]] = {}
    missing = []
    for path in paths:
        folder, _, name = path.rpartition("/")
        if folder not in present:
            present[folder] = _listing(findings, folder)
        if name not in present[folder]:
            missing.append(path)
    return missing


def _listing(findings: Findings, folder: str) -> set[str]:
    try:
        return set(os.listdir(findings.root / folder))
    except (FileNotFoundError, NotADirectoryError):
        return set()
    except OSError as error:
        findings.add(f"cannot list {folder}: {error.strerror}; make it readable")
        return set()


def _there(path: Path, proof: str) -> bool:
    return (
        os.path.isdir(path) if proof.endswith("/") else os.path.isfile(path)
    )  # False, too, where looking is forbidden


def _nearby(root: Path) -> list[Path]:
    """Returns the directories one level down and one up."""
    try:
        with os.scandir(root) as entries:
            below = sorted(root / entry.name for entry in entries if entry.is_dir())
    except OSError:
        below = []
    return [*below, root.resolve().parent]
