"""From a finished staging folder into a dataset's root, so that an interruption leaves nothing in between.

``root/.unpacking`` is being filled and is thrown away when found; ``root/.placing`` is whole, and moving what it
holds into the root is continued when found.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmark.core.errors import DataError
from benchmark.core.files import write_json
from benchmark.datasets.base import Archive

STAGING, PLACING = ".unpacking", ".placing"
NOTES = ".brought"  # folder of one JSON file per source whose content is in the root
DEEPEST = 3  # folders that an archive may wrap a dataset in
LISTED = 8


@contextlib.contextmanager
def staging(root: Path) -> Iterator[Path]:
    """Yields an empty folder on the root's file system, which is gone afterwards, whatever happens."""
    folder = root / STAGING
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir()
    except OSError as error:
        raise DataError(
            f"cannot make {folder}: {error.strerror}; choose a writable --root"
        ) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def proven(folder: Path, archives: Sequence[Archive]) -> list[Archive]:
    """Returns the archives of a dataset whose every proof lies below ``folder``."""
    return [
        archive for archive in archives if all(_there(folder, proof) for proof in archive.proves)
    ]


def _there(folder: Path, proof: str) -> bool:
    return (folder / proof).is_dir() if proof.endswith("/") else (folder / proof).is_file()


def find_base(tree: Path, archives: Sequence[Archive]) -> Path | None:
    """Returns the folder in ``tree`` (itself or up to three levels down) that is a dataset's root, or None."""
    level = [tree]
    for _ in range(DEEPEST + 1):
        for folder in level:
            if proven(folder, archives):
                return folder
        level = [
            Path(entry)
            for folder in level
            for entry in os.scandir(folder)
            if entry.is_dir(follow_symlinks=False)
        ]
    return None


def top_names(tree: Path) -> str:
    """Returns what lies at the top of a folder, for messages."""
    names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in os.scandir(tree))
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more or "nothing"


def notes(root: Path) -> dict[str, dict[str, str]]:
    """Returns the facts of the sources that were brought into the root, by their file names."""
    return {
        path.name.removesuffix(".json"): json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((root / NOTES).glob("*.json"))
    }


def place(base: Path, root: Path, file: str, facts: Mapping[str, str]) -> None:
    """Moves all that ``base`` (on the same file system) holds into ``root``; folders in both are merged.

    The facts of the source, called ``file``, are noted in the same move. Raises DataError, before anything moves,
    when files would be replaced.
    """
    taken = sorted(_conflicts(base, root))
    if taken:
        more = f" and {len(taken) - LISTED} more" if len(taken) > LISTED else ""
        raise DataError(
            f"{root} already holds {', '.join(taken[:LISTED])}{more}, which the source would replace; remove them, or "
            "choose an empty --root"
        )
    write_json(base / NOTES / f"{file}.json", dict(facts))
    os.rename(base, root / PLACING)
    continue_placing(root)


def continue_placing(root: Path) -> bool:
    """Moves what an interrupted run left in ``root/.placing``; returns whether there was anything."""
    waiting = root / PLACING
    if not waiting.is_dir():
        return False
    _move_into(waiting, root)
    return True


def _conflicts(base: Path, root: Path) -> Iterator[str]:
    for entry in os.scandir(base):
        target = root / entry.name
        if not os.path.lexists(target):
            continue
        if entry.is_dir(follow_symlinks=False) and target.is_dir():
            yield from (f"{entry.name}/{name}" for name in _conflicts(Path(entry), target))
        else:
            yield entry.name


def _move_into(source: Path, target: Path) -> None:
    """Moves the entries of a folder, folders first: the lists that loaders read come when their images are there."""
    entries = sorted(
        os.scandir(source), key=lambda entry: (not entry.is_dir(follow_symlinks=False), entry.name)
    )
    for entry in entries:
        there = target / entry.name
        if entry.is_dir(follow_symlinks=False) and there.is_dir():
            _move_into(Path(entry), there)
        else:
            os.rename(entry.path, there)
    source.rmdir()
