"""Landmarks: revisited Oxford and Paris to evaluate on, training sets, and distractors.

Radenovic et al., CVPR 2018, section 3: for each query, images of the landmark are easy, hard or
junk. The protocol says which of them are relevant, and which are ignored (removed from the ranking
before it is scored):

easy    relevant: easy; ignored: junk and hard
medium  relevant: easy and hard; ignored: junk
hard    relevant: hard; ignored: junk and easy

Queries are cropped to the landmark; those without relevant images are left out of a protocol. All
images of a training set train, and the revisited sets that ``landmarks`` names are searched.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, get_args

import numpy as np
import pandas as pd

from benchmark.core.options import option
from benchmark.core.paths import leaves_root
from benchmark.datasets import DATASETS
from benchmark.datasets.base import (
    Archive,
    Counts,
    Dataset,
    Findings,
    ImageSet,
    Judgements,
    Protocol,
    fingerprint_of,
)
from benchmark.datasets.index import (
    IndexConfig,
    IndexedLoader,
    RootConfig,
    image_sets,
    index_rows,
    load_all,
)
from benchmark.datasets.io.images import Opener
from benchmark.datasets.io.lists import read_rows
from benchmark.datasets.io.matlab_and_pickle import (
    read_matlab,
    read_plain_pickle,
    texts,
    whole_numbers,
)

LEVELS = {  # protocol -> grades that are relevant, grades that are ignored
    "easy": (("easy",), ("junk", "hard")),
    "medium": (("easy", "hard"), ("junk",)),
    "hard": (("hard",), ("junk", "easy")),
}
GRADES = ("easy", "hard", "junk")
KEYS = ("imlist", "qimlist", "gnd")
LandmarkSet = Literal["roxford5k", "rparis6k", "roxford_1m", "rparis_1m"]
BASES = {"roxford_1m": "roxford5k", "rparis_1m": "rparis6k"}  # set with distractors -> set
DISTRACTORS = "revisitop1m"
DISTRACTOR_LIST = "revisitop1m.txt"
CLUSTERS = "retrieval-SfM-120k-imagenames-clusterids.mat"
ANNOTATIONS = "annotations/annotation_clean_train.txt"


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


class RevisitedLoader(IndexedLoader):
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
        sets, truth, protocols = image_sets(table, self.opener), self.truth, {}
        queries = sets["query"]
        for level, grades in LEVELS.items():
            relevant, ignored = map(truth.indices, grades)
            used = [number for number, indices in enumerate(relevant) if len(indices)]
            paths = [queries.names[number] for number in used]
            opener = Opener(Path(self.config.root), paths, truth.boxes[used])
            judgements = Judgements(
                tuple(relevant[n] for n in used), tuple(ignored[n] for n in used)
            )
            query = ImageSet(queries.labels[used], paths, opener)
            protocols[f"{self.name}_{level}"] = Protocol(query, sets["gallery"], judgements)
        return protocols

    def fingerprint(self, table: pd.DataFrame) -> str:
        """Return the digest of the index table and the ground truth."""
        grades = [[entry[grade].tolist() for grade in GRADES] for entry in self.truth.graded]
        return fingerprint_of(super().fingerprint(table), repr((self.truth.boxes.tolist(), grades)))

    def counts(self, table: pd.DataFrame, dataset: Dataset) -> dict[str, dict[str, int]]:
        """Return the numbers of images, and of the queries of each protocol."""
        counts = {"train": 0, "query": len(self.truth.queries), "gallery": len(self.truth.gallery)}
        counts |= {name: len(protocol.query) for name, protocol in dataset.protocols.items()}
        return {part: {"images": number} for part, number in counts.items()}


@DATASETS.register("roxford5k", display="ROxford")
class ROxford5k(RevisitedLoader):
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
class RParis6k(RevisitedLoader):
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


@DATASETS.register("revisitop1m", display="R1M distractors")
class RevisitOp1M(IndexedLoader):
    """Distractors for the revisited landmark sets, for evaluation only.

    R1M: a million photographs without landmarks of Oxford or Paris (Radenovic et al., CVPR 2018,
    section 3.3); from http://ptak.felk.cvut.cz/revisitop/revisitop1m/. The sets ``roxford_1m`` and
    ``rparis_1m`` of the training sets add these images to a gallery.
    """

    Config = RootConfig
    name = "revisitop1m"
    metrics = ("map",)
    trains = False
    roles = ("query",)
    archives = (
        *(Archive(f"revisitop1m.{part}.tar.gz", ("jpg/",)) for part in range(1, 101)),
        Archive(DISTRACTOR_LIST, (DISTRACTOR_LIST,)),
    )
    # Radenovic et al., CVPR 2018, section 3.3
    expected: ClassVar = {"distractors": {"images": 1001001}}
    sources: ClassVar = {"distractors": DISTRACTOR_LIST}

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the distractors, all of them queries, in the order of the list."""
        rows = read_rows(findings, DISTRACTOR_LIST, ["path"], once="path")
        return index_rows("jpg/" + rows["path"], rows["path"], "", "query", self.name)

    def counts(self, table: pd.DataFrame, dataset: Dataset) -> dict[str, dict[str, int]]:
        """Return the number of distractors."""
        return {"distractors": {"images": len(table)}}


class LandmarkTrainingLoader(IndexedLoader):
    """Loads training images, and the landmark sets that ``landmarks`` names for evaluation.

    The protocols of ``roxford_1m`` and ``rparis_1m`` are those of ``roxford5k`` and ``rparis6k``
    with the images of ``revisitop1m`` as distractors.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config(IndexConfig):
        """The options of indexed datasets (packed: the training images), and the evaluation."""

        landmarks: list[LandmarkSet] = option(
            ["roxford5k", "rparis6k"], help="landmark sets to evaluate on"
        )
        landmarks_root: str | None = option(
            None,
            help="directory with a folder for each of them; null: the parent of the root",
        )

    metrics = ("map",)
    roles = ("train",)

    def load(self) -> Dataset:
        """Return the dataset; raise DataError with everything wrong, landmark sets included."""
        problems = []
        if not self.config.landmarks:
            words = "landmarks names no set to evaluate on"
            allowed = ", ".join(get_args(LandmarkSet))
            problems.append(f"dataset '{self.name}': {words}; allowed: {allowed}")
        loaders = self._landmark_loaders()
        own, *sets = load_all([super().load, *(one.load for one in loaders.values())], problems)
        loaded = dict(zip(loaders, sets, strict=True))
        protocols: dict[str, Protocol] = {}
        for name in dict.fromkeys(self.config.landmarks):
            base = loaded[BASES.get(name, name)]
            for split, protocol in base.protocols.items():
                if name in BASES:
                    distractors = loaded[DISTRACTORS].protocols[DISTRACTORS].query
                    protocol = replace(protocol, distractors=distractors)
                protocols[split.replace(base.name, name)] = protocol
        counts = {"train": own.counts["train"]}
        counts |= {name: {"images": len(protocol.query)} for name, protocol in protocols.items()}
        for name, loader in loaders.items():
            counts |= {f"{name} {part}": loaded[name].counts[part] for part in loader.expected}
        fingerprint = fingerprint_of(own.fingerprint, *(one.fingerprint for one in sets))
        return Dataset(self.name, own.train, protocols, fingerprint, self.metrics, counts)

    def expected_counts(self) -> Counts:
        """Return the published counts of the training images and of the landmark sets."""
        expected = dict(self.expected)
        for name, loader in self._landmark_loaders().items():
            expected |= {f"{name} {part}": kinds for part, kinds in loader.expected.items()}
        return expected

    def _landmark_loaders(self) -> dict[str, IndexedLoader]:
        """Return the loader of each set of files that the configuration needs."""
        names = [BASES.get(name, name) for name in self.config.landmarks]
        if set(self.config.landmarks) & set(BASES):
            names.append(DISTRACTORS)
        return self.beside(names, self.config.landmarks_root)


@DATASETS.register("sfm120k", display="SfM-120k")
class Sfm120k(LandmarkTrainingLoader):
    """Landmarks clustered by 3D reconstruction, evaluated on revisited Oxford and Paris.

    Radenovic et al., PAMI 2019; from http://cmp.felk.cvut.cz/cnnimageretrieval/. Clusters are
    classes. An image is named by 32 hexadecimal digits and lies in three folders made of its last
    six, the last two first.
    """

    name = "sfm120k"
    archives = (Archive("ims.tar.gz", ("ims/",)), Archive(CLUSTERS, (CLUSTERS,)))
    expected: ClassVar = {"train": {"images": 117369}}  # of the usual release; no paper states it
    sources: ClassVar = {"train": CLUSTERS}

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the training images, in the order of the file."""
        with findings.reading(CLUSTERS):
            cids, cluster = read_matlab(findings.root / CLUSTERS, "cids", "cluster")
            names, clusters = texts(cids), whole_numbers(cluster)
        if clusters.shape != (len(names),) or not names:
            findings.fail(
                f"{CLUSTERS} has {len(names)} cids and clusters {clusters.shape}; "
                "needed: one each per image"
            )
        malformed = [repr(name)[:80] for name in names if len(name) < 6 or not name.isalnum()]
        findings.add_all(
            f"malformed names in {CLUSTERS}",
            malformed,
            "each must be six or more letters and digits",
        )
        findings.stop()
        paths = [f"ims/{name[-2:]}/{name[-4:-2]}/{name[-6:-4]}/{name}" for name in names]
        return index_rows(paths, clusters.astype(str))


@DATASETS.register("landmarks_clean", display="Landmarks-clean")
class LandmarksClean(LandmarkTrainingLoader):
    """Cleaned photographs of landmarks, evaluated on revisited Oxford and Paris.

    Gordo et al., IJCV 2017, section 3.1, cleaned by matching local features from Babenko et al.,
    ECCV 2014. The images are no longer distributed: bring your own. Landmarks are classes.
    """

    name = "landmarks_clean"
    archives = (Archive("annotation_clean_train.txt", (ANNOTATIONS,)),)
    # SoftBinAP section 4.1
    expected: ClassVar = {"train": {"images": 42410, "classes": 586}}
    sources: ClassVar = {"train": ANNOTATIONS}

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the training images, in the order of the list: path below the root, landmark."""
        rows = read_rows(findings, ANNOTATIONS, ["path", "landmark"])
        return index_rows(rows["path"], rows["landmark"])


def read_truth(findings: Findings, file: str) -> Truth:
    """Return the ground truth in a file below the root; raise DataError with all problems."""
    with findings.reading(file):
        content = read_plain_pickle(findings.root / file)
        gallery, queries, entries = (tuple(content[key]) for key in KEYS)
    for key, names in zip(KEYS, (gallery, queries), strict=False):
        findings.add_all(
            f"wrong names in {file}: {key}",
            [repr(n)[:80] for n in names if not isinstance(n, str) or leaves_root(n)],
            "each must be the name of an image below jpg/",
        )
    if len(entries) != len(queries):
        findings.problems.append(
            f"{file}: {len(entries)} entries in gnd for {len(queries)} queries in qimlist; "
            "get it again"
        )
    boxes, graded, wrong = [], [], []
    for number, entry in enumerate(entries):
        where = f"gnd[{number}]"
        try:
            box = [float(edge) for edge in entry["bbx"]]
            left, top, right, bottom = box
            grades = {grade: whole_numbers(entry[grade]) for grade in GRADES}
            every = np.concatenate(list(grades.values()))
        except Exception as error:  # a wrong value makes it raise anything
            words = f"{where} needs bbx of four numbers and the lists {', '.join(GRADES)}"
            wrong.append(f"{words} ({error!r:.80})")
            continue
        if not (left < right and top < bottom and np.isfinite(box).all()):
            wrong.append(f"{where}['bbx'] is not left, top, right, bottom: {box}")
        if not ((every >= 0) & (every < len(gallery))).all():
            wrong.append(f"{where} must grade images of imlist, 0 to {len(gallery) - 1}")
        if len(np.unique(every)) < len(every):
            wrong.append(f"{where} grades an image twice")
        boxes.append(box)
        graded.append(grades)
    findings.add_all(
        f"wrong values in {file}", wrong, "it must be the revisited ground truth; get it again"
    )
    findings.stop()
    return Truth(gallery, queries, np.array(boxes).reshape(-1, 4), tuple(graded))
