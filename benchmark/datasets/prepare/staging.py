"""From a finished staging folder into a dataset's root, without half-finished states in between.

``root/.unpacking`` is being filled, and is deleted when a run finds it; ``root/.placing`` is
complete, and a run that finds it goes on moving its content into the root.
"""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmark.core.errors import DataError
from benchmark.core.files import remove_folder, write_json
from benchmark.core.paths import MAX_RECORD, is_text, os_errors, read_regular
from benchmark.core.record_files import parse_strictly
from benchmark.datasets.base import Archive
from benchmark.datasets.io.roots import is_there

STAGING, MOVING = ".unpacking", ".placing"
PACKING = ".packing-"  # and the side: a packed copy that is being written
SOURCES = ".brought"  # folder with a JSON file for each source whose content is in the root
RECORD, LOCK, DOWNLOADS = "prepared.json", ".prepare.lock", "downloads"
OWN = {STAGING, MOVING, SOURCES, RECORD, LOCK, DOWNLOADS}
MAX_WRAPPING = 3  # folders that an archive may wrap a dataset in
LISTED = 8


def check_places(folders: Iterable[Path], files: Iterable[Path] = ()) -> None:
    """Raise DataError where a link, or anything else, stands in the place of a folder or file.

    Through a link something that lies elsewhere would be written to, moved or deleted.
    """
    for paths, kind, is_right in ((folders, "folder", stat.S_ISDIR), (files, "file", stat.S_ISREG)):
        for path in paths:
            try:
                mode = os.lstat(path).st_mode
            except OSError:  # nothing is there, or the writer says what is wrong
                continue
            if not is_right(mode):
                raise DataError(
                    f"{path} is {'a link' if stat.S_ISLNK(mode) else f'no {kind}'}, and nothing is "
                    "written or deleted there; remove it and start the same command again"
                )


@contextlib.contextmanager
def staging(root: Path) -> Iterator[Path]:
    """Yield an empty folder on the root's file system, and delete it at the end."""
    folder = root / STAGING
    remove_folder(folder)
    with os_errors(f"cannot make {folder}", "choose a writable --root"):
        folder.mkdir()
    try:
        yield folder
    finally:
        remove_folder(folder)


def unpacked_archives(folder: Path, archives: Sequence[Archive]) -> list[Archive]:
    """Return the archives of a dataset of which everything they provide lies below ``folder``."""
    return [
        archive for archive in archives if all(is_there(folder, path) for path in archive.provides)
    ]


def find_base(tree: Path, archives: Sequence[Archive]) -> Path | None:
    """Return the folder in ``tree``, or up to three levels below it, that is a dataset's root."""
    level = [tree]
    for _ in range(MAX_WRAPPING + 1):
        for folder in level:
            if unpacked_archives(folder, archives):
                return folder
        level = [
            Path(entry)
            for folder in level
            for entry in sorted(os.scandir(folder), key=lambda entry: entry.name)
            if entry.is_dir(follow_symlinks=False)
        ]
    return None


def top_names(tree: Path) -> str:
    """Return the names at the top of a folder, for messages."""
    names = [entry.name + ("/" if entry.is_dir() else "") for entry in os.scandir(tree)]
    return first_names(names) or "nothing"


def first_names(names: Sequence[str]) -> str:
    """Return the first names in alphabetical order, and the number of the others."""
    names = sorted(names)
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def read_sources(root: Path) -> dict[str, dict[str, str]]:
    """Return the records of the sources whose content is in the root, by their file names."""
    records = {}
    for path in sorted((root / SOURCES).glob("*.json")):
        try:
            if not is_text(path.stem):
                raise ValueError("its name is no text")
            records[path.stem] = parse_strictly(dict[str, str], read_regular(path, MAX_RECORD))
        except (OSError, ValueError) as error:
            raise DataError(f"cannot read {path}: {error}; delete it") from error
    return records


def move_into_root(base: Path, root: Path, file: str, record: Mapping[str, str]) -> None:
    """Move the content of ``base`` (on the same file system) into ``root``; merge folders.

    ``record`` of the source called ``file`` is written in the same move. Raise DataError, before
    anything moves, when files would be replaced. Files named like ours are left out.
    """
    names = (name for name in os.listdir(base) if name in OWN or name.startswith(PACKING))
    for path in (base / name for name in names):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    if conflicts := list(_conflicts(base, root)):
        raise DataError(
            f"{root} already holds {first_names(conflicts)}, which the source would replace; "
            "remove them, or choose an empty --root"
        )
    write_json(base / SOURCES / f"{file}.json", dict(record))
    os.rename(base, root / MOVING)
    continue_moving(root)


def continue_moving(root: Path) -> bool:
    """Move what an interrupted run left in ``root/.placing``; return whether there was anything."""
    waiting = root / MOVING
    if not waiting.is_dir():
        return False
    with os_errors(f"cannot move {waiting} into place", "remove it and give the sources again"):
        _move(waiting, root)
    return True


def _conflicts(base: Path, root: Path) -> Iterator[str]:
    for entry in os.scandir(base):
        target = root / entry.name
        if entry.is_dir(follow_symlinks=False) and _is_folder(target):
            yield from (f"{entry.name}/{name}" for name in _conflicts(Path(entry), target))
        elif os.path.lexists(target):
            yield entry.name


def _is_folder(path: Path) -> bool:
    """Say whether something may be moved into ``path``: through a link it would leave the root."""
    return path.is_dir() and not path.is_symlink()


def _move(source: Path, target: Path) -> None:
    """Move the entries of a folder, folders first: the lists come when their images are there."""
    for entry in sorted(
        os.scandir(source), key=lambda entry: (not entry.is_dir(follow_symlinks=False), entry.name)
    ):
        there = target / entry.name
        if entry.is_dir(follow_symlinks=False) and _is_folder(there):
            _move(Path(entry), there)
        else:
            os.rename(entry.path, there)
    source.rmdir()
