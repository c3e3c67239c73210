"""The ground truth of a revisited landmark set: ``gnd_<name>.pkl``, verified."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmark.core.paths import leaves_root
from benchmark.datasets.io.findings import Findings
from benchmark.datasets.io.unpickling import read_plain_pickle

GRADES = ("easy", "hard", "junk")
KEYS = ("imlist", "qimlist", "gnd")


@dataclass(frozen=True)
class Truth:
    """The queries of a landmark set and the grades of its gallery.

    gallery  names of the images that are searched (G)
    queries  names of the query images (Q)
    boxes    float64 (Q, 4): left, top, right, bottom of the landmark in each query, in pixels
    graded   per query: grade -> int64 indices into the gallery
    """

    gallery: tuple[str, ...]
    queries: tuple[str, ...]
    boxes: np.ndarray
    graded: tuple[dict[str, np.ndarray], ...]

    def indices(self, grades: Sequence[str]) -> list[np.ndarray]:
        """Return, for each query, the gallery indices of these grades, ascending."""
        return [
            np.sort(np.concatenate([entry[grade] for grade in grades])) for entry in self.graded
        ]

    def text(self) -> str:
        """Return the boxes and grades in writing, for the fingerprint."""
        grades = [[entry[grade].tolist() for grade in GRADES] for entry in self.graded]
        return repr((self.boxes.tolist(), grades))


def read_truth(findings: Findings, file: str) -> Truth:
    """Return the ground truth in a file below the root; raise DataError with all problems."""
    with findings.reading(file):
        content = read_plain_pickle(findings.root / file)
    if not isinstance(content, dict) or not all(
        isinstance(content.get(key), (list, tuple)) for key in KEYS
    ):
        findings.fail(
            f"{file} must hold a dict with the lists {', '.join(KEYS)}; get it from its publishers"
        )
    gallery, queries, entries = (tuple(content[key]) for key in KEYS)
    for key, names in zip(KEYS, (gallery, queries), strict=False):
        findings.add_all(
            f"wrong names in {file}: {key}",
            [repr(name)[:80] for name in names if not _is_name(name)],
            "each must be the name of an image below jpg/",
        )
    if len(entries) != len(queries):
        findings.add(
            f"{file}: {len(entries)} entries in gnd for {len(queries)} queries in qimlist; "
            "get it again"
        )
    wrong: list[str] = []
    checked = [
        _entry(wrong, f"gnd[{number}]", entry, len(gallery)) for number, entry in enumerate(entries)
    ]
    findings.add_all(
        f"wrong values in {file}", wrong, "it must be the revisited ground truth; get it again"
    )
    findings.stop()
    boxes = np.array([box for box, _ in checked]).reshape(-1, 4)
    return Truth(gallery, queries, boxes, tuple(graded for _, graded in checked))


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and not leaves_root(name)


def _entry(
    wrong: list[str], where: str, entry: Any, images: int
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return (box, indices of each grade) of one query; report what is wrong to ``wrong``."""
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
        indices = _numbers(entry[grade])
        whole = indices is not None and (not indices.size or indices.dtype.kind in "iu")
        if indices is None or not whole or not np.all((indices >= 0) & (indices < images)):
            wrong.append(f"{where}['{grade}'] must list indices into imlist, 0 to {images - 1}")
            indices = np.empty(0)
        graded[grade] = indices.astype(np.int64)
    every = np.concatenate(list(graded.values()))
    if len(np.unique(every)) < len(every):
        wrong.append(f"{where} grades an image twice")
    return box, graded


def _numbers(values: Any) -> np.ndarray | None:
    """Return an array (N,), or None when the values are not a list of finite numbers."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        return None
    sound = array.ndim == 1 and array.dtype.kind in "iuf"
    return array if sound and np.isfinite(array).all() else None
