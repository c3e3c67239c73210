"""Small copies, in the exact layouts, of datasets given out on request or no longer at all.

``MAKERS[name](root)`` writes one into ``root``. Loaders need ``allow_counts: true`` to accept it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from archives import write_jpeg, write_lines


def make_landmarks_clean(root: Path) -> None:
    """Three landmarks of three images; the list names image and landmark."""
    rows = []
    for landmark in range(3):
        for view in range(3):
            path = f"full/{landmark}/{landmark * 10 + view}.jpg"
            write_jpeg(root / path, 5 * landmark + view)
            rows.append(f"{path} {landmark}")
    write_lines(root / "annotations" / "annotation_clean_train.txt", rows)


def make_revisitop1m(root: Path) -> None:
    """Five distractors in two folders; the list names them below ``jpg/``."""
    paths = [f"{number % 2:03d}/{number * 7919:032x}.jpg" for number in range(5)]
    for number, path in enumerate(paths):
        write_jpeg(root / "jpg" / path, 40 + number)
    write_lines(root / "revisitop1m.txt", paths)


MAKERS: dict[str, Callable[[Path], None]] = {
    "landmarks_clean": make_landmarks_clean,
    "revisitop1m": make_revisitop1m,
}
