"""The layout of a directory of class folders: every file is an image in its place, or is named in one error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmark.datasets.files import IMAGE_SUFFIXES
from benchmark.errors import DataError

IGNORED = frozenset({"thumbs.db", "desktop.ini"})  # beside hidden files, whose names start with a dot
LISTED = 10  # offenders named in one message


def class_images(root: Path, categories: bool) -> list[Path]:
    """Returns the images below ``root``, relative to it and sorted: class/image, or category/class/image.

    Raises DataError naming what would otherwise be left out unseen: images at another depth, files with
    endings that are not read, folders without files. Links to folders are followed.
    """
    expected = "category/class/image" if categories else "class/image"
    depth = 3 if categories else 2
    images, strangers, empty = [], [], []
    for path, is_file in _walk(root, root, ()):
        if not is_file:
            empty.append(path)
        elif path.suffix.lower() not in IMAGE_SUFFIXES:
            strangers.append(path)
        else:
            images.append(path)
    misplaced = [path for path in images if len(path.parts) != depth]
    endings = ", ".join(sorted(IMAGE_SUFFIXES))
    if not images and not strangers and not empty:
        raise DataError(f"dataset 'folder': no images in {root}; expected {expected} with endings {endings}")
    found = []
    if misplaced:
        other = "false" if categories else "true"
        hint = f", or set categories: {other}" if len(misplaced) == len(images) else ""
        found.append(f"{len(misplaced)} images at another depth: {some(misplaced)}; move each to {expected}{hint}")
    if strangers:
        found.append(
            f"{len(strangers)} files with other endings: {some(strangers)}; convert images to one of {endings}, "
            "and move other files out of the root"
        )
    if empty:
        found.append(f"{len(empty)} empty folders: {some(empty)}; add their images, or remove them")
    if found:
        raise DataError("\n  ".join([f"dataset 'folder' at {root}: expected {expected}", *found]))
    return sorted(images)


def _walk(root: Path, folder: Path, above: tuple[Path, ...]) -> Iterator[tuple[Path, bool]]:
    """Yields (path relative to ``root``, True) for each file and (folder, False) for each folder without any."""
    here = folder.resolve()
    if here in above:
        raise DataError(f"dataset 'folder': {folder} is a link to a folder that contains it; remove the link")
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise DataError(f"dataset 'folder': cannot list {folder}: {error.strerror}; make it readable") from error
    entries = [path for path in entries if not path.name.startswith(".") and path.name.lower() not in IGNORED]
    if not entries and folder != root:
        yield folder.relative_to(root), False
    for path in entries:
        if path.is_dir():
            yield from _walk(root, path, (*above, here))
        else:
            yield path.relative_to(root), True


def some(names: Iterable[object]) -> str:
    """Returns the first names, and how many more there are."""
    names = [name.as_posix() if isinstance(name, Path) else str(name) for name in names]
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
