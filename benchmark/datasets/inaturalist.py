"""iNaturalist 2018: photographs of plants and animals (Van Horn et al., CVPR 2018), split by species.

Images from https://github.com/visipedia/inat_comp/tree/master/2018 (training and validation images together), split
files from the authors of Smooth-AP (Brown et al., ECCV 2020, section 5.1), who keep 5,690 species to train and 2,452
to test. A path reads ``train_val2018/<kingdom>/<species number>/<image>.jpg``: class and category are its last two
folders.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd

from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive
from benchmark.datasets.index import IndexedLoader, rows_of
from benchmark.datasets.io.findings import Findings
from benchmark.datasets.io.lists import read_rows

TRAIN, TEST = (f"Inat_dataset_splits/Inaturalist_{split}_set1.txt" for split in ("train", "test"))


@DATASETS.register("inaturalist", display="iNaturalist-2018")
class INaturalist(IndexedLoader):
    """Species of plants and animals."""

    name = "inaturalist"
    archives = (
        Archive("train_val2018.tar.gz", ("train_val2018/",)),
        Archive("Inaturalist_train_set1.txt", (TRAIN,)),
        Archive("Inaturalist_test_set1.txt", (TEST,)),
    )
    # Smooth-AP table 1 and section 5.1.
    expected: ClassVar = {
        "train": {"images": 325846, "classes": 5690},
        "test": {"images": 136093, "classes": 2452},
    }
    sources: ClassVar = {"train": TRAIN, "test": TEST}

    def read(self, findings: Findings) -> pd.DataFrame:
        """Returns the rows of the two lists, in their order."""
        return pd.concat([self._part(findings, TRAIN, "train"), self._part(findings, TEST, "test")])

    def _part(self, findings: Findings, file: str, role: str) -> pd.DataFrame:
        paths = read_rows(findings, file, ["path"])["path"]
        # there are few folders: each is taken apart once
        place, folders = pd.factorize(
            np.array([path.rpartition("/")[0] for path in paths], dtype=object)
        )
        parts = [["", "", *folder.split("/")] for folder in folders]
        deep = np.array([len(part) >= 5 for part in parts], dtype=bool)[place]
        form = "each must read <folder>/<category>/<class>/<image>"
        findings.add_all(f"malformed lines in {file}", paths[~deep].tolist(), form)
        label, category = (
            np.array([part[at] for part in parts], dtype=object)[place] for at in (-1, -2)
        )
        return rows_of(paths[deep], label[deep], category[deep], role, role.removeprefix("train"))
