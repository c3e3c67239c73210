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
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from benchmark.core.errors import DataError
from benchmark.core.files import check_regular
from benchmark.core.options import option, options
from benchmark.core.paths import leaves_root
from benchmark.datasets import DATASETS
from benchmark.datasets.base import (
    Archive,
    Dataset,
    DatasetLoader,
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
)
from benchmark.datasets.io.images import Opener
from benchmark.datasets.io.lists import (
    read_matlab,
    read_plain_pickle,
    read_rows,
    texts,
    whole_numbers,
)

LEVELS = {  # protocol -> grades that are relevant, grades that are ignored
    "easy": (("easy",), ("junk", "hard")),
    "medium": (("easy", "hard"), ("junk",)),
    "hard": (("hard",), ("junk", "easy")),
}
GRADES = ("easy", "hard", "junk")
BASES = {"roxford_1m": "roxford5k", "rparis_1m": "rparis6k"}  # set with distractors -> set
DISTRACTORS = "revisitop1m"
DISTRACTOR_LIST = "revisitop1m.txt"
CLUSTERS = "retrieval-SfM-120k-imagenames-clusterids.mat"
ANNOTATIONS = "annotations/annotation_clean_train.txt"
MOST_BYTES = 2**27  # of a ground truth; those of both sets have less than 2**20


class RevisitedLoader(IndexedLoader):
    """Loads one revisited landmark set, for evaluation only: its training set is empty.

    Protocols are named ``<name>_easy``, ``<name>_medium`` and ``<name>_hard``. Each image's label
    is its name: only the judgements say what is relevant.

    boxes    float64 (Q, 4): left, top, right, bottom of the landmark in each query, in pixels
    graded   per query: grade -> int64 indices into the gallery
    """

    Config = RootConfig
    metrics = ("map",)
    trains = False
    roles = ("query", "gallery")
    boxes: np.ndarray
    graded: list[dict[str, np.ndarray]]

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the queries and the gallery, in the order of the ground truth."""
        file = self.source
        again = "get the ground truth again"
        with findings.reading(file):
            content = read_plain_pickle(findings.root / file)
            gallery, queries, entries = (list(content[key]) for key in ("imlist", "qimlist", "gnd"))
        for key, names in (("imlist", gallery), ("qimlist", queries)):
            wrong = [repr(n)[:80] for n in names if not isinstance(n, str) or leaves_root(n)]
            advice = "each must be the name of an image below jpg/"
            findings.add_all("malformed_name", f"wrong names in {file}: {key}", wrong, advice)
        if len(entries) != len(queries):
            message = (
                f"{file}: {len(entries)} entries in gnd for {len(queries)} queries in qimlist; "
                f"{again}"
            )
            findings.add("other_count", message, file)
        read = []
        wrong = []
        for number, entry in enumerate(entries):
            try:
                read.append(read_entry(entry, len(gallery)))
            except Exception as error:  # a wrong value makes it raise anything
                wrong.append(f"gnd[{number}]: {error!r:.160}")
        advice = (
            f"each must have bbx and {', '.join(GRADES)}, lists of other images of imlist; {again}"
        )
        findings.add_all("wrong_value", "wrong values", wrong, advice, file)
        findings.stop()
        self.boxes = np.array([box for box, _ in read]).reshape(-1, 4)
        self.graded = [grades for _, grades in read]
        levels = judged_levels(self.graded)
        empty = [level for level, (used, _) in levels.items() if not len(used)]
        what = "protocols without any relevant image"
        findings.add_all("no_relevant_image", what, empty, again)
        images = pd.Series([*queries, *gallery], dtype=object)
        role = np.repeat(["query", "gallery"], [len(queries), len(gallery)])
        return index_rows("jpg/" + images + ".jpg", images, "", role, self.name)

    def protocols(self, table: pd.DataFrame) -> dict[str, Protocol]:
        """Return the three protocols of the same queries and gallery."""
        sets = image_sets(table, self.opener)
        protocols = {}
        for level, (used, judgements) in judged_levels(self.graded).items():
            paths = [sets["query"].names[number] for number in used]
            opener = Opener(Path(self.config.root), paths, self.boxes[used])
            query = ImageSet(sets["query"].labels[used], paths, opener)
            protocols[f"{self.name}_{level}"] = Protocol(query, sets["gallery"], judgements)
        return protocols

    def fingerprint(self, table: pd.DataFrame) -> str:
        """Return the digest of the index table and the ground truth."""
        grades = [[entry[grade].tolist() for grade in GRADES] for entry in self.graded]
        return fingerprint_of(super().fingerprint(table), repr((self.boxes.tolist(), grades)))

    def counts(self, table: pd.DataFrame, dataset: Dataset) -> dict[str, dict[str, int]]:
        """Return the numbers of images, and of the queries of each protocol."""
        counts = {"train": 0} | {role: int((table["role"] == role).sum()) for role in self.roles}
        counts |= {name: len(protocol.query) for name, protocol in dataset.protocols.items()}
        return {split: {"images": number} for split, number in counts.items()}


def judged_levels(
    graded: Sequence[dict[str, np.ndarray]],
) -> dict[str, tuple[np.ndarray, Judgements]]:
    """Return, by level, the queries with relevant images int64 (Q,), and their judgements."""

    def images_of(grades: Sequence[str]) -> list[np.ndarray]:
        """Return the images that each query has in one of the grades."""
        images = []
        for of_query in graded:
            images.append(np.sort(np.concatenate([of_query[grade] for grade in grades])))
        return images

    levels = {}
    for level, (relevant_grades, ignored_grades) in LEVELS.items():
        relevant = images_of(relevant_grades)
        ignored = images_of(ignored_grades)
        used = [number for number, indices in enumerate(relevant) if len(indices)]
        judgements = Judgements(tuple(relevant[n] for n in used), tuple(ignored[n] for n in used))
        levels[level] = (np.array(used, dtype=np.int64), judgements)
    return levels


def read_ground_truth(
    path: Path,
    given: Sequence[int],
) -> dict[str, tuple[np.ndarray, Judgements]]:
    """Return what ``judged_levels`` does of a ``gnd_*.pkl``; raise DataError for other files, and
    where it lists another number of queries than ``given``, or more images."""
    check_regular(path, MOST_BYTES)
    try:
        content = read_plain_pickle(path)
        images = len(content["imlist"])
        graded = [read_entry(entry, images)[1] for entry in content["gnd"]]
    except Exception as error:  # whatever the bytes provoke
        raise DataError(f"{path} is no ground truth of landmarks: {error!r:.160}") from error
    queries, gallery = given
    if queries != len(graded) or gallery < images:
        swapped = gallery == len(graded) and queries >= images
        advice = "exchange the two" if swapped else "give both in the order of its lists"
        raise DataError(
            f"{path} lists {len(graded):,} queries and {images:,} images, given are {queries:,} "
            f"queries and a gallery of {gallery:,}; {advice}"
        )
    return judged_levels(graded)


def read_entry(entry: Any, images: int) -> tuple[list[float], dict[str, np.ndarray]]:
    """Return the box of a query and its graded images, of 0 to ``images`` - 1, by grade."""
    left, top, right, bottom = box = [float(edge) for edge in entry["bbx"]]
    grades = {grade: whole_numbers(entry[grade]) for grade in GRADES}
    every = np.concatenate(list(grades.values()))
    if not (left < right and top < bottom and np.isfinite(box).all()):
        raise ValueError(f"bbx is not left, top, right, bottom: {box}")
    if not ((every >= 0) & (every < images)).all():
        raise ValueError(f"it must grade images of imlist, 0 to {images - 1}")
    if len(np.unique(every)) < len(every):
        raise ValueError("it grades an image twice")
    return box, grades


REVISITED = "http://cmp.felk.cvut.cz/revisitop/"


@DATASETS.register(
    "roxford5k",
    display="ROxford",
    pages=["https://www.robots.ox.ac.uk/~vgg/data/oxbuildings/", REVISITED],
)
class ROxford5k(RevisitedLoader):
    """Revisited Oxford: buildings of Oxford, for evaluation only.

    Philbin et al., CVPR 2007. Images all in ``jpg/``; ground truth from the second page.
    """

    name = "roxford5k"
    source = "gnd_roxford5k.pkl"
    archives = (
        Archive("oxbuild_images.tgz", ("jpg/",)),
        Archive(source, (source,)),
    )
    # SoftBinAP section 4.1
    expected: ClassVar = {"query": {"images": 70}, "gallery": {"images": 4993}}


@DATASETS.register(
    "rparis6k",
    display="RParis",
    pages=["https://www.robots.ox.ac.uk/~vgg/data/parisbuildings/", REVISITED],
)
class RParis6k(RevisitedLoader):
    """Revisited Paris: landmarks of Paris, for evaluation only.

    Philbin et al., CVPR 2008. Images all in ``jpg/``; ground truth from the second page.
    """

    name = "rparis6k"
    source = "gnd_rparis6k.pkl"
    archives = (
        Archive("paris_1.tgz", ("jpg/",), flat=True),
        Archive("paris_2.tgz", ("jpg/",), flat=True),
        Archive(source, (source,)),
    )
    # SoftBinAP section 4.1
    expected: ClassVar = {"query": {"images": 70}, "gallery": {"images": 6322}}


@DATASETS.register(
    "revisitop1m",
    display="R1M distractors",
    pages=["http://ptak.felk.cvut.cz/revisitop/revisitop1m/"],
)
class RevisitOp1M(IndexedLoader):
    """Distractors for the revisited landmark sets, for evaluation only.

    R1M: a million photographs without landmarks of Oxford or Paris (Radenovic et al., CVPR 2018,
    section 3.3). The sets ``roxford_1m`` and ``rparis_1m`` of the training sets add these images
    to a gallery.
    """

    Config = RootConfig
    name = DISTRACTORS
    metrics = ("map",)
    trains = False
    roles = ("query",)
    archives = (
        *(Archive(f"revisitop1m.{number}.tar.gz", ("jpg/",)) for number in range(1, 101)),
        Archive(DISTRACTOR_LIST, (DISTRACTOR_LIST,)),
    )
    # Radenovic et al., CVPR 2018, section 3.3
    expected: ClassVar = {"distractors": {"images": 1001001}}
    source = DISTRACTOR_LIST

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

    @options
    class Config(IndexConfig):
        """The options of indexed datasets (packed: the training images), and the evaluation."""

        landmarks: list[Literal["roxford5k", "rparis6k", "roxford_1m", "rparis_1m"]] = option(
            ["roxford5k", "rparis6k"], min_length=1, help="landmark sets to evaluate on"
        )
        landmarks_root: str | None = option(
            None,
            help="directory with a folder for each of them; null: the parent of the root",
        )

    metrics = ("map",)
    roles = ("train",)

    def load(self) -> Dataset:
        """Return the dataset; raise DataError with everything wrong, landmark sets included."""
        this, loaded = self.load_with_others()
        protocols: dict[str, Protocol] = {}
        for name in dict.fromkeys(self.config.landmarks):
            base = loaded[BASES.get(name, name)]
            for split, protocol in base.protocols.items():
                if name in BASES:
                    distractors = loaded[DISTRACTORS].protocols[DISTRACTORS].query
                    protocol = replace(protocol, distractors=distractors)
                protocols[split.replace(base.name, name)] = protocol
        counts = {"train": this.counts["train"]}
        counts |= {name: {"images": len(protocol.query)} for name, protocol in protocols.items()}
        for name, loader in self.others().items():
            counts |= {f"{name} {split}": loaded[name].counts[split] for split in loader.expected}
        return replace(this, protocols=protocols, counts=counts)

    def others(self) -> dict[str, DatasetLoader]:
        """Return the loader of each set of files that the evaluation needs."""
        names = [BASES.get(name, name) for name in self.config.landmarks]
        if set(self.config.landmarks) & set(BASES):
            names.append(DISTRACTORS)
        return self.beside(names, self.config.landmarks_root)


@DATASETS.register(
    "sfm120k", display="SfM-120k", pages=["http://cmp.felk.cvut.cz/cnnimageretrieval/"]
)
class Sfm120k(LandmarkTrainingLoader):
    """Landmarks clustered by 3D reconstruction, evaluated on revisited Oxford and Paris.

    Radenovic et al., PAMI 2019. Clusters are
    classes. An image is named by 32 hexadecimal digits and lies in three folders made of its last
    six, the last two first.
    """

    name = "sfm120k"
    archives = (Archive("ims.tar.gz", ("ims/",)), Archive(CLUSTERS, (CLUSTERS,)))
    expected: ClassVar = {"train": {"images": 117369}}  # of the usual release; no paper states it
    source = CLUSTERS

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the training images, in the order of the file."""
        with findings.reading(CLUSTERS):
            cids, cluster = read_matlab(findings.root / CLUSTERS, "cids", "cluster")
            names = texts(cids)
            clusters = whole_numbers(cluster)
        if clusters.shape != (len(names),) or not names:
            message = (
                f"{CLUSTERS} has {len(names)} cids and clusters {clusters.shape}; needed: one each "
                "per image"
            )
            findings.fail("other_count", message, CLUSTERS)
        wrong = [repr(name)[:80] for name in names if len(name) < 6 or not name.isalnum()]
        advice = "each must be six or more letters and digits"
        findings.add_all("malformed_name", "malformed names", wrong, advice, CLUSTERS)
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
    source = ANNOTATIONS

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the training images, in the order of the list: path below the root, landmark."""
        rows = read_rows(findings, ANNOTATIONS, ["path", "landmark"])
        return index_rows(rows["path"], rows["landmark"])
