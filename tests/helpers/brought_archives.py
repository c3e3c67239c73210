"""Small copies, in the exact layouts, of datasets that nobody can simply download.

``MAKERS[name](root)`` writes one into ``root``. Loaders accept them with ``allow_counts: true``
only.
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


def make_vggface2(root: Path) -> None:
    """Four people to train on and two to test on, three faces each, with their boxes."""
    for split, people in (("train", range(2, 6)), ("test", (1, 9))):
        rows = ["NAME_ID,X,Y,W,H"]
        for person in people:
            for view in range(3):
                name = f"n{person:06d}/{view + 1:04d}_01"
                write_jpeg(root / split / f"{name}.jpg", 7 * person + view)
                rows.append(f'"{name}",10,8,20,16')
        write_lines(root / "bb_landmark" / f"loose_bb_{split}.csv", rows)


def make_ijbc(root: Path) -> None:
    """Three people: one with five still images, one with three and two videos, one with four.

    An image shows two of them; the videos have three and two frames.
    """
    stills = {1: ["1", "2", "3", "4", "5"], 2: ["5", "6", "7"], 3: ["8", "9", "10", "11"]}
    rows = ["SUBJECT_ID,FILENAME,FACE_X,FACE_Y,FACE_WIDTH,FACE_HEIGHT,SIGHTING_ID"]
    for person, images in stills.items():
        rows += [f"{person},img/{image}.png,{4 * person},6,20,16,1" for image in images]
    frames = [
        f"frames/{video}_{number}.png"
        for video, count in ((20, 3), (21, 2))
        for number in range(count)
    ]
    rows += [f"2,{frame},12,6,20,16,2" for frame in frames]
    for number, name in enumerate(dict.fromkeys(row.split(",")[1] for row in rows[1:])):
        write_jpeg(root / "images" / name, number)
    write_lines(root / "protocols" / "ijbc_metadata.csv", rows)


MAKERS: dict[str, Callable[[Path], None]] = {
    "ijbc": make_ijbc,
    "landmarks_clean": make_landmarks_clean,
    "revisitop1m": make_revisitop1m,
    "vggface2": make_vggface2,
}
