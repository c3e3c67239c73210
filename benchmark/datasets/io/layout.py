"""The layout of a directory of class folders: every file is an image in its place, or is named in one error."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmark.core.errors import DataError
from benchmark.datasets.io.files import IMAGE_SUFFIXES

IGNORED = frozenset(
    {"thumbs.db", "desktop.ini"}
)  # beside hidden files, whose names start with a dot
LISTED = 10  # offenders named in one message
CLASS_DEPTH, CATEGORY_DEPTH = 2, 3  # parts of an image's path below the root


def class_images(root: Path, categories: bool) -> list[Path]:
    """Returns the images below ``root``, relative to it and sorted: class/image, or category/class/image.

    Raises DataError naming what would otherwise be left out unseen: images at another depth, files with
    endings that are not read, folders without files, names that are not text. Links to folders are followed.
    """
    expected = "category/class/image" if categories else "class/image"
    images, strangers, empty, garbled = [], [], [], []
    for path, is_file in _walk(root, root, ()):
        if not is_text(path):
            garbled.append(ascii(path.as_posix()))
        elif not is_file:
            empty.append(path)
        elif path.suffix.lower() not in IMAGE_SUFFIXES:
            strangers.append(path)
        else:
            images.append(path)
    endings = ", ".join(sorted(IMAGE_SUFFIXES))
    if not images and not strangers and not empty and not garbled:
        raise DataError(
            f"dataset 'folder': no images in {root}; expected {expected} with endings {endings}: one folder for each "
            "class, with its images in it"
        )
    found = []
    misplaced = _misplaced(images, categories, expected)
    if misplaced:
        found.append(misplaced)
    if strangers:
        found.append(
            f"{_count(strangers, 'file')} with other endings: {some(strangers)}; convert images to one of {endings}, "
            "and move other files out of the root"
        )
    if empty:
        advice = (
            "add its images, or remove it"
            if len(empty) == 1
            else "add their images, or remove them"
        )
        found.append(f"{_count(empty, 'empty folder')}: {some(empty)}; {advice}")
    if garbled:
        are, them = ("is", "it") if len(garbled) == 1 else ("are", "them")
        found.append(
            f"{_count(garbled, 'name')} that {are} not UTF-8 text: {some(garbled)}; rename {them}"
        )
    if found:
        raise DataError("\n  ".join([f"dataset 'folder' at {root}: expected {expected}", *found]))
    return sorted(images)


def _misplaced(images: list[Path], categories: bool, expected: str) -> str | None:
    """Returns the problem of images at another depth than the expected one, with the advice that fits all of them."""
    depth, other = (CATEGORY_DEPTH, CLASS_DEPTH) if categories else (CLASS_DEPTH, CATEGORY_DEPTH)
    wrong = [path for path in images if len(path.parts) != depth]
    if not wrong:
        return None
    depths = {len(path.parts) for path in images}
    advice = f"move each to {expected}"
    if depths == {1}:
        advice = f"give each class a folder of its own and {advice}, or name each image's class in a split_csv"
    elif depths == {other}:
        advice += f", or set categories: {'false' if categories else 'true'}"
    return f"{_count(wrong, 'image')} at another depth: {some(wrong)}; {advice}"


def _count(found: list[Path], noun: str) -> str:
    """Returns "1 file" or "3 files"."""
    return f"{len(found)} {noun}" if len(found) == 1 else f"{len(found)} {noun}s"


def _walk(root: Path, folder: Path, above: tuple[Path, ...]) -> Iterator[tuple[Path, bool]]:
    """Yields (path relative to ``root``, True) for each file and (folder, False) for each folder without any."""
    here = folder.resolve()
    if here in above:
        raise DataError(
            f"dataset 'folder': {folder} is a link to a folder that contains it; remove the link"
        )
    try:
        with os.scandir(
            folder
        ) as listing:  # says of most entries what they are without a query for each
            entries = sorted(
                (entry.name, entry.is_dir()) for entry in listing if not _ignored(entry.name)
            )
    except OSError as error:
        raise DataError(
            f"dataset 'folder': cannot list {folder}: {error.strerror}; make it readable"
        ) from error
    below = folder.relative_to(root)
    if not entries and folder != root:
        yield below, False
    for name, is_folder in entries:
        if is_folder:
            yield from _walk(root, folder / name, (*above, here))
        else:
            yield below / name, True


def _ignored(name: str) -> bool:
    return name.startswith(".") or name.lower() in IGNORED


def is_text(path: Path) -> bool:
    """Says whether a name can be written to a file: bytes that are not UTF-8 arrive as lone surrogates."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def some(names: Iterable[object]) -> str:
    """Returns the first names, and how many more there are."""
    names = [name.as_posix() if isinstance(name, Path) else str(name) for name in names]
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
