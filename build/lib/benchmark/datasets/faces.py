"""Faces, cropped to a box and a margin around it: VGGFace2 to train on, IJB-C to evaluate on.

VGGFace2 (Cao et al., FG 2018): 9,131 people, in two splits of different people. No longer
distributed: bring your own. Each split is a folder with a folder for each person, and a table of
the boxes around the faces, which lists its images. IJB-C (Maze et al., ICB 2018): 3,531 people in
still images and in frames of videos; given out on request: bring your own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pandas as pd

from benchmark.core.options import option
from benchmark.datasets import DATASETS
from benchmark.datasets.base import (
    Archive,
    Counts,
    Dataset,
    Findings,
    ImageSet,
    Protocol,
    fingerprint_of,
)
from benchmark.datasets.index import IndexedLoader, RootConfig, index_rows, load_all
from benchmark.datasets.io.images import Opener
from benchmark.datasets.io.lists import read_table

MARGIN = 0.3  # VGGFace2, section 4.1: boxes are extended by this share of their sides
METADATA = "protocols/ijbc_metadata.csv"
FRAMES = "frames/"  # before the names of frames: frames/<video>_<number>.<suffix>
LEAST_INSTANCES = 5


@dataclass(frozen=True, kw_only=True)
class FaceConfig(RootConfig):
    """The options of sets of faces."""

    margin: float = option(
        MARGIN,
        at_least=0.0,
        at_most=100.0,
        help="share by which the sides of a face's box grow before the image is cropped to it",
    )
    aligned: bool = option(
        False,
        help="read crops that were aligned beforehand, as they are: the same paths below aligned/",
    )


class FaceLoader(IndexedLoader):
    """Loads images of faces, whose table has the left, top, width and height of each, in pixels."""

    Config: ClassVar[type] = FaceConfig

    @property
    def above(self) -> str:
        """The folder that the paths of images are below."""
        return "aligned/" if self.config.aligned else ""

    def opener(self, rows: pd.DataFrame) -> Opener:
        """Return the opener of the images, cropped to the faces unless they are aligned."""
        root, paths = Path(self.config.root), rows["path"].tolist()
        if self.config.aligned:
            return Opener(root, paths)
        boxes = rows[list(self.further)].to_numpy(dtype=np.float64)
        grown = boxes[:, 2:] * self.config.margin / 2
        ends = boxes[:, :2] - grown, boxes[:, :2] + boxes[:, 2:] + grown
        return Opener(root, paths, np.concatenate(ends, axis=1))

    def fingerprint(self, table: pd.DataFrame) -> str:
        """Return the digest of the index table, the boxes and their margin."""
        rows = table.sort_values("role", kind="stable")
        boxes = rows[list(self.further)].to_numpy(dtype=np.float64)
        return fingerprint_of(super().fingerprint(table), boxes, repr(self.config.margin))


@DATASETS.register("vggface2", display="VGGFace2")
class VggFace2(FaceLoader):
    """Faces to train on, evaluated on the faces of other people, and on IJB-C."""

    @dataclass(frozen=True, kw_only=True)
    class Config(FaceConfig):
        """The options of sets of faces, and the evaluation."""

        evaluated_on: list[Literal["ijbc"]] = option(
            ["ijbc"], help="further sets of faces to evaluate on, in folders beside the root"
        )

    name = "vggface2"
    lists: ClassVar = {
        "train": "bb_landmark/loose_bb_train.csv",
        "test": "bb_landmark/loose_bb_test.csv",
    }
    archives = (
        Archive("vggface2_train.tar.gz", ("train/",)),
        Archive("vggface2_test.tar.gz", ("test/",)),
        Archive("bb_landmark.tar.gz", tuple(lists.values())),
    )
    # Smooth-AP table 1, whose 3.31 million training images are those of both splits
    expected: ClassVar = {"train": {"classes": 8631}, "test": {"images": 169396, "classes": 500}}
    further = ("X", "Y", "W", "H")

    def read_list(self, findings: Findings, file: str, role: str, protocol: str) -> pd.DataFrame:
        """Return the index rows of one split: its names are ``<person>/<image>``."""
        rows = read_table(findings, file, ["NAME_ID"], self.further)
        names = rows["NAME_ID"]
        wrong = [repr(name)[:80] for name in names if name.count("/") != 1 or name.startswith("/")]
        findings.add_all(f"malformed names in {file}", wrong, "each must be <person>/<image>")
        person = [name.partition("/")[0] for name in names]
        index = index_rows(f"{self.above}{role}/" + names + ".jpg", person, "", role, protocol)
        return index.join(rows[list(self.further)])

    def load(self) -> Dataset:
        """Return the dataset; raise DataError with everything wrong, IJB-C included."""
        own, *loaded = load_all([super().load, *(one.load for one in self._others().values())])
        counts = {name: part for one in loaded for name, part in one.counts.items()}
        counts.pop("train", None)
        return replace(
            own,
            protocols=own.protocols | {k: p for one in loaded for k, p in one.protocols.items()},
            fingerprint=fingerprint_of(own.fingerprint, *(one.fingerprint for one in loaded)),
            counts={**own.counts, **counts},
            images_fingerprint="",  # the new fingerprint
        )

    def expected_counts(self) -> Counts:
        """Return the published counts of both splits, and of the other sets of faces."""
        further = (one.expected for one in self._others().values())
        return {key: counts for part in (self.expected, *further) for key, counts in part.items()}

    def _others(self) -> dict[str, IndexedLoader]:
        config = self.config
        return self.beside(config.evaluated_on, margin=config.margin, aligned=config.aligned)


@DATASETS.register("ijbc", display="IJB-C")
class IjbC(FaceLoader):
    """Faces of still images and videos, for evaluation only.

    As Smooth-AP section 5.1 has it, a video is one instance, the mean of the vectors of its frames,
    and people with fewer than five instances are left out.
    """

    name = "ijbc"
    trains = False
    roles = ("test",)
    unique = ("path", "label")  # one image may show several people
    archives = (Archive("IJB-C.tar.gz", ("images/img/", "images/frames/", METADATA)),)
    # Smooth-AP table 1. IJB-C has 31,334 still images and 117,542 frames of 11,779 videos (Maze et
    # al., table 1), so that this counts images and frames, not instances.
    expected: ClassVar = {"ijbc": {"images": 148824, "classes": 3531}}
    sources: ClassVar = {"ijbc": METADATA}
    further = ("FACE_X", "FACE_Y", "FACE_WIDTH", "FACE_HEIGHT")

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the images of people with five instances or more, in the order of the table."""
        rows = read_table(findings, METADATA, ("SUBJECT_ID", "FILENAME"), self.further)
        people, names = rows["SUBJECT_ID"], rows["FILENAME"]
        # a frame belongs to its video, a still image to itself
        sources = [n.rpartition("_")[0] if n.startswith(FRAMES) else n for n in names]
        instances = people + "/" + pd.Series(sources, rows.index, dtype=object)
        taken = instances.groupby(people).transform("nunique") >= LEAST_INSTANCES
        self.instances = pd.factorize(instances[taken])[0].astype(np.int64)  # by first use
        paths = f"{self.above}images/" + names[taken]
        index = index_rows(paths, people[taken], "", "test", self.name)
        return index.join(rows[list(self.further)])

    def protocol(self, name: str, sets: Mapping[str, ImageSet]) -> Protocol:
        """Return the protocol in which the images of a video are one instance."""
        return Protocol(sets["test"], instances=self.instances)

    def counts(self, table: pd.DataFrame, dataset: Dataset) -> dict[str, dict[str, int]]:
        """Return the counts of the images, and of the instances."""
        return {**dataset.counts, "ijbc instances": {"images": int(self.instances.max()) + 1}}
