"""Landmarks-clean: photographs of landmarks, cleaned by matching local features.

Gordo et al., IJCV 2017, section 3.1, cleaned from Babenko et al., ECCV 2014. The images are no
longer distributed: bring your own. Landmarks are classes, all of them for training; retrieval is
evaluated on the landmark sets that ``landmarks`` names.
"""

from typing import ClassVar

import pandas as pd

from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive
from benchmark.datasets.index import index_rows
from benchmark.datasets.io.findings import Findings
from benchmark.datasets.io.lists import read_rows
from benchmark.datasets.landmark_training import LandmarkTrainingLoader

ANNOTATIONS = "annotations/annotation_clean_train.txt"


@DATASETS.register("landmarks_clean", display="Landmarks-clean")
class LandmarksClean(LandmarkTrainingLoader):
    """Cleaned photographs of landmarks, evaluated on revisited Oxford and Paris."""

    name = "landmarks_clean"
    archives = (Archive("annotation_clean_train.txt", (ANNOTATIONS,)),)
    # SoftBinAP section 4.1
    expected: ClassVar = {"train": {"images": 42410, "classes": 586}}
    sources: ClassVar = {"train": ANNOTATIONS}

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the training images, in the order of the list: path below the root, landmark."""
        rows = read_rows(findings, ANNOTATIONS, ["path", "landmark"])
        return index_rows(rows["path"], rows["landmark"], "", "train", "")
