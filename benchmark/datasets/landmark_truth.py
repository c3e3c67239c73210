"""The ground truth of a revisited landmark set: ``gnd_<name>.pkl``, read without running code and verified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmark.core.errors import DataError
from benchmark.datasets.io.findings import Findings
from benchmark.datasets.io.lists import leaves_root
from benchmark.datasets.io.unpickling import read_plain_pickle

GRADES = ("easy", "hard", "junk")


@dataclass(frozen=True)
class Truth:
    """What each query shows and finds.

    gallery  names of the images searched (G)
    queries  names of the query images (Q)
    boxes    float64 (Q, 4): left, top, right, bottom of what is searched for, in pixels
    graded   per query: {grade: int64 places in the gallery}
    """

    gallery: tuple[str, ...]
    queries: tuple[str, ...]
    boxes: np.ndarray
    graded: tuple[dict[str, np.ndarray], ...]

    def places(self, grades: Sequence[str]) -> list[np.ndarray]:
        """Returns, for each query, the gallery's places of these grades, ascending."""
        return [
            np.sort(np.concatenate([entry[grade] for grade in grades])) for entry in self.graded
        ]

    def text(self) -> str:
        """Returns the boxes and grades in writing."""
        grades = [[entry[grade].tolist() for grade in GRADES] for entry in self.graded]
        return repr((self.boxes.tolist(), grades))


def read_truth(findings: Findings, file: str) -> Truth:
    """Returns the ground truth in a file below the root; raises DataError with everything that is wrong with it."""
    try:
        content = read_plain_pickle(findings.root / file)
    except DataError as error:
        findings.add(str(error))
        findings.stop()
    keys = ("imlist", "qimlist", "gnd")
    if not isinstance(content, dict) or not all(key in content for key in keys):
        findings.add(f"{file} must hold a dict with {', '.join(keys)}; get it from its publishers")
        findings.stop()
    gallery, queries = (_names(findings, f"{file}: {key}", content[key]) for key in keys[:2])
    entries = list(content["gnd"])
    if len(entries) != len(queries):
        findings.add(
            f"{file}: {len(entries)} entries in gnd for {len(queries)} queries in qimlist; get it again"
        )
    wrong: list[str] = []
    checked = [
        _entry(wrong, f"gnd[{number}]", entry, len(gallery)) for number, entry in enumerate(entries)
    ]
    findings.add_all(
        f"values in {file} are wrong", wrong, "it must be the revisited ground truth; get it again"
    )
    findings.stop()
    return Truth(
        gallery,
        queries,
        np.array([box for box, _ in checked]),
        tuple(graded for _, graded in checked),
    )


def _names(findings: Findings, where: str, names: Any) -> tuple[str, ...]:
    names = tuple(names)
    wrong = [repr(name)[:80] for name in names if not isinstance(name, str) or leaves_root(name)]
    findings.add_all(
        f"names in {where} are wrong", wrong, "each must be the name of an image below jpg/"
    )
    return names


def _entry(
    wrong: list[str], where: str, entry: Any, images: int
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Returns (box, {grade: places}); what is wrong goes into ``wrong``."""
    missing = [key for key in ("bbx", *GRADES) if not isinstance(entry, dict) or key not in entry]
    if missing:
        wrong.append(f"{where} has no {', '.join(missing)}")
        return np.zeros(4), {}
    box = _numbers(entry["bbx"])
    if box is None or box.shape != (4,) or not (box[0] < box[2] and box[1] < box[3]):
        wrong.append(f"{where}['bbx'] is not left, top, right, bottom: {entry['bbx']!r:.80}")
        box = np.zeros(4)
    graded = {}
    for grade in GRADES:
        places = _numbers(entry[grade])
        if (
            places is None
            or (places != np.floor(places)).any()
            or (places < 0).any()
            or (places >= images).any()
        ):
            wrong.append(f"{where}['{grade}'] is not a list of places in imlist, 0 to {images - 1}")
            places = np.empty(0)
        graded[grade] = places.astype(np.int64)
    every = np.concatenate(list(graded.values()))
    if len(np.unique(every)) < len(every):
        wrong.append(f"{where} grades an image twice")
    return box, graded


def _numbers(values: Any) -> np.ndarray | None:
    """Returns a flat float64 array, or None when the values are no finite numbers."""
    try:
        array = np.asarray(values, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        return None
    return array if np.isfinite(array).all() else None
