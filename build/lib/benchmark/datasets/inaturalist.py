"""iNaturalist 2018: photographs of plants and animals (Van Horn et al., CVPR 2018), by species.

Images from https://github.com/visipedia/inat_comp/tree/master/2018 (training and validation images
together), split files from the authors of Smooth-AP (Brown et al., ECCV 2020, section 5.1), who
train on 5,690 species and test on 2,452. A path reads
``train_val2018/<kingdom>/<species number>/<image>.jpg``: category and class are its last folders.
"""

from typing import ClassVar

import numpy as np
import pandas as pd

from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive, Findings
from benchmark.datasets.index import IndexedLoader, index_rows
from benchmark.datasets.io.lists import read_rows

TRAIN, TEST = (f"Inat_dataset_splits/Inaturalist_{split}_set1.txt" for split in ("train", "test"))


@DATASETS.register("inaturalist", display="iNaturalist-2018")
class INaturalist(IndexedLoader):
    """Species of plants and animals."""

    name = "inaturalist"
    lists: ClassVar = {"train": TRAIN, "test": TEST}
    archives = (
        Archive("train_val2018.tar.gz", ("train_val2018/",)),
        Archive("Inaturalist_train_set1.txt", (TRAIN,)),
        Archive("Inaturalist_test_set1.txt", (TEST,)),
    )
    # Smooth-AP table 1 and section 5.1
    expected: ClassVar = {
        "train": {"images": 325846, "classes": 5690},
        "test": {"images": 136093, "classes": 2452},
    }

    def read_list(self, findings: Findings, file: str, role: str, protocol: str) -> pd.DataFrame:
        """Return the index rows of one list."""
        paths = read_rows(findings, file, ["path"])["path"]
        # there are few folders: each is split once
        index, folders = pd.factorize(paths.map(lambda path: path.rpartition("/")[0]))
        parts = [["", "", *folder.split("/")] for folder in folders]
        deep = np.array([len(part) >= 5 for part in parts], dtype=bool)[index]
        form = "each must read <folder>/<category>/<class>/<image>"
        findings.add_all(f"malformed lines in {file}", paths[~deep], form)
        ends = np.array([part[-2:] for part in parts], dtype=object).reshape(-1, 2)[index][deep]
        return index_rows(paths[deep], ends[:, 1], ends[:, 0], role, protocol)
