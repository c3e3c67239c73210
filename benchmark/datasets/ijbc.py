"""IJB-C: faces of 3,531 people in still images and in frames of videos.

Maze et al., ICB 2018; given out on request: bring your own. For evaluation only. As Smooth-AP
section 5.1 has it, a video is one instance, the mean of the vectors of its frames, and people with
fewer than five instances are left out.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import pandas as pd

from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive, Dataset, ImageSet, Protocol
from benchmark.datasets.faces import FaceLoader
from benchmark.datasets.index import index_rows
from benchmark.datasets.io.findings import Findings
from benchmark.datasets.io.lists import read_table

METADATA = "protocols/ijbc_metadata.csv"
FRAMES = "frames/"  # before the names of frames: frames/<video>_<number>.<suffix>
LEAST_INSTANCES = 5


@DATASETS.register("ijbc", display="IJB-C")
class IjbC(FaceLoader):
    """Faces of still images and videos, for evaluation only."""

    name = "ijbc"
    trains = False
    roles = ("test",)
    unique = ("path", "label")  # one image may show several people
    archives = (Archive("IJB-C.tar.gz", ("images/img/", "images/frames/", METADATA)),)
    # Smooth-AP table 1. IJB-C has 31,334 still images and 117,542 frames of 11,779 videos (Maze et
    # al., table 1), so that this counts images and frames, not instances.
    expected: ClassVar = {"ijbc": {"images": 148824, "classes": 3531}}
    sources: ClassVar = {"ijbc": METADATA}
    texts = ("SUBJECT_ID", "FILENAME")
    further = ("FACE_X", "FACE_Y", "FACE_WIDTH", "FACE_HEIGHT")

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the images of people with five instances or more, in the order of the table."""
        rows = read_table(findings, METADATA, self.texts, self.further)
        rows = rows.assign(instance=rows["SUBJECT_ID"] + "/" + rows["FILENAME"].map(instance_of))
        instances = rows.groupby("SUBJECT_ID")["instance"].transform("nunique")
        rows = rows[instances >= LEAST_INSTANCES]
        self.instances = pd.factorize(rows["instance"])[0].astype(np.int64)  # in order of first use
        paths = f"{self.above}images/" + rows["FILENAME"]
        index = index_rows(paths, rows["SUBJECT_ID"], "", "test", self.name)
        return index.join(rows[list(self.further)])

    def protocol(self, name: str, sets: Mapping[str, ImageSet]) -> Protocol:
        """Return the protocol in which the images of a video are one instance."""
        return Protocol(sets["test"], instances=self.instances)

    def counts(self, table: pd.DataFrame, dataset: Dataset) -> dict[str, dict[str, int]]:
        """Return the counts of the images, and of the instances."""
        return {**dataset.counts, "ijbc instances": {"images": int(self.instances.max()) + 1}}


def instance_of(name: str) -> str:
    """Return the video that a frame belongs to, or the still image itself."""
    return name.rpartition("_")[0] if name.startswith(FRAMES) else name
