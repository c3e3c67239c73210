"""The revisited Oxford and Paris landmark sets: cropped queries; easy, hard and junk images.

Radenovic et al., CVPR 2018, section 3: for each query, images of the landmark are easy, hard or
junk. The protocol says which of them are relevant, and which are ignored (removed from the ranking
before it is scored):

easy    relevant: easy; ignored: junk and hard
medium  relevant: easy and hard; ignored: junk
hard    relevant: hard; ignored: junk and easy

Queries without relevant images are left out of a protocol.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from PIL import Image

from benchmark.core.errors import DataError
from benchmark.core.paths import leaves_root
from benchmark.datasets import DATASETS
from benchmark.datasets.base import (
    Archive,
    Dataset,
    ImageSet,
    Judgements,
    Protocol,
    fingerprint_of,
)
from benchmark.datasets.index import IndexedLoader, RootConfig, image_sets, index_rows
from benchmark.datasets.io.findings import Findings
from benchmark.datasets.io.images import Opener
from benchmark.datasets.io.unpickling import read_plain_pickle

LEVELS = {  # protocol -> grades that are relevant, grades that are ignored
    "easy": (("easy",), ("junk", "hard")),
    "medium": (("easy", "hard"), ("junk",)),
    "hard": (("hard",), ("junk", "easy")),
}
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


class LandmarkLoader(IndexedLoader):
    """Loads one revisited landmark set, for evaluation only: its training set is empty.

    Protocols are named ``<name>_easy``, ``<name>_medium`` and ``<name>_hard``. Each image's label
    is its name: only the judgements say what is relevant.
    """

    Config = RootConfig
    metrics = ("map",)
    trains = False
    roles = ("query", "gallery")
    truth: Truth

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the queries and the gallery, in the order of the ground truth."""
        self.truth = truth = read_truth(findings, f"gnd_{self.name}.pkl")
        empty = [
            level
            for level, (relevant, _) in LEVELS.items()
            if not any(map(len, truth.indices(relevant)))
        ]
        findings.add_all(
            "protocols without any relevant image", empty, "get the ground truth again"
        )
        names = pd.Series([*truth.queries, *truth.gallery], dtype=object)
        role = np.repeat(["query", "gallery"], [len(truth.queries), len(truth.gallery)])
        return index_rows("jpg/" + names + ".jpg", names, "", role, self.name)

    def protocols(self, table: pd.DataFrame) -> dict[str, Protocol]:
        """Return the three protocols of the same queries and gallery."""
        sets = image_sets(table, self.opener)
        return {
            f"{self.name}_{level}": self._graded(sets["query"], sets["gallery"], *grades)
            for level, grades in LEVELS.items()
        }

    def fingerprint(self, table: pd.DataFrame) -> str:
        """Return the digest of the index table and the ground truth."""
        return fingerprint_of(super().fingerprint(table), self.truth.text())

    def counts(self, table: pd.DataFrame, dataset: Dataset) -> dict[str, dict[str, int]]:
        """Return the numbers of images, and of the queries of each protocol."""
        counts = {"train": 0, "query": len(self.truth.queries), "gallery": len(self.truth.gallery)}
        counts |= {name: len(protocol.query) for name, protocol in dataset.protocols.items()}
        return {part: {"images": number} for part, number in counts.items()}

    def _graded(
        self,
        queries: ImageSet,
        gallery: ImageSet,
        relevant_grades: Sequence[str],
        ignored_grades: Sequence[str],
    ) -> Protocol:
        """Return the protocol in which images of some grades are relevant and of others ignored."""
        truth = self.truth
        relevant, ignored = truth.indices(relevant_grades), truth.indices(ignored_grades)
        used = [number for number, indices in enumerate(relevant) if len(indices)]
        paths = [queries.names[number] for number in used]
        opener = CroppedOpener(Path(self.config.root), paths, truth.boxes[used])
        judgements = Judgements(tuple(relevant[n] for n in used), tuple(ignored[n] for n in used))
        return Protocol(ImageSet(queries.labels[used], paths, opener), gallery, judgements)


@DATASETS.register("roxford5k", display="ROxford")
class ROxford5k(LandmarkLoader):
    """Revisited Oxford: buildings of Oxford, for evaluation only.

    Philbin et al., CVPR 2007. Images from https://www.robots.ox.ac.uk/~vgg/data/oxbuildings/, all
    in ``jpg/``; ground truth from http://cmp.felk.cvut.cz/revisitop/.
    """

    name = "roxford5k"
    archives = (
        Archive("oxbuild_images.tgz", ("jpg/",)),
        Archive("gnd_roxford5k.pkl", ("gnd_roxford5k.pkl",)),
    )
    # SoftBinAP section 4.1
    expected: ClassVar = {"query": {"images": 70}, "gallery": {"images": 4993}}
    sources: ClassVar = dict.fromkeys(expected, "gnd_roxford5k.pkl")


@DATASETS.register("rparis6k", display="RParis")
class RParis6k(LandmarkLoader):
    """Revisited Paris: landmarks of Paris, for evaluation only.

    Philbin et al., CVPR 2008. Images from https://www.robots.ox.ac.uk/~vgg/data/parisbuildings/,
    all in ``jpg/``; ground truth from http://cmp.felk.cvut.cz/revisitop/.
    """

    name = "rparis6k"
    archives = (
        Archive("paris_1.tgz", ("jpg/",), flat=True),
        Archive("paris_2.tgz", ("jpg/",), flat=True),
        Archive("gnd_rparis6k.pkl", ("gnd_rparis6k.pkl",)),
    )
    # SoftBinAP section 4.1
    expected: ClassVar = {"query": {"images": 70}, "gallery": {"images": 6322}}
    sources: ClassVar = dict.fromkeys(expected, "gnd_rparis6k.pkl")


class CroppedOpener(Opener):
    """Opens image number i cropped to its box: left, top, right, bottom, rounded to whole pixels.

    The part of a box beyond the edges of the image is left out.
    """

    def __init__(self, root: Path, paths: Sequence[str], boxes: np.ndarray):
        super().__init__(root, paths)
        self.boxes = boxes

    def __call__(self, index: int) -> Image.Image:
        return self._cropped(super().__call__(index), index)

    def stored(self, index: int) -> Image.Image:
        """Return image number i as it is stored, cropped to its box."""
        picture = super().stored(index)
        whole = Image.fromarray(picture) if isinstance(picture, np.ndarray) else picture
        return self._cropped(whole, index)

    def _cropped(self, image: Image.Image, index: int) -> Image.Image:
        box = [round(edge) for edge in self.boxes[index].tolist()]
        left, top = max(box[0], 0), max(box[1], 0)
        right, bottom = min(box[2], image.width), min(box[3], image.height)
        if left >= right or top >= bottom:
            raise DataError(
                f"{self.root / self.paths[index]} is {image.width} x {image.height} pixels, and "
                f"its box {box} lies outside; get the image and the ground truth again"
            )
        return image.crop((left, top, right, bottom))


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
            [repr(n)[:80] for n in names if not isinstance(n, str) or leaves_root(n)],
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
