"""CUB-200-2011: photographs of 200 bird species (Wah et al., Caltech technical report CNS-TR-2011-001, 2011).

From https://www.vision.caltech.edu/datasets/cub_200_2011/, for non-commercial research and education. Retrieval
papers train on the first 100 classes and test on the others; ``train_test_split.txt``, made for classification,
is not used (ROADMAP, section 4).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd

from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive
from benchmark.datasets.index import IndexedLoader, rows_of
from benchmark.datasets.io.findings import Findings
from benchmark.datasets.io.lists import keep_numbers, read_rows

IMAGES, LABELS, CLASSES = "images.txt", "image_class_labels.txt", "classes.txt"
LAST_TRAINING_CLASS = 100


@DATASETS.register("cub", display="CUB-200-2011")
class Cub(IndexedLoader):
    """Bird species: classes 1 to 100 to train, 101 to 200 to test."""

    name = "cub"
    archives = (
        Archive(
            "CUB_200_2011.tgz",
            ("images/", IMAGES, LABELS, CLASSES),
            "97eceeb196236b17998738112f37df78",
        ),
    )
    # ROADMAP section 4 gives 11,788 images of 200 classes; the two halves follow from the class numbers.
    expected: ClassVar = {
        "train": {"images": 5864, "classes": 100},
        "test": {"images": 5924, "classes": 100},
    }
    sources: ClassVar = {"train": IMAGES, "test": IMAGES}

    def read(self, findings: Findings) -> pd.DataFrame:
        """Returns the table joined from the three lists, in the order of images.txt."""
        images = read_rows(findings, IMAGES, ["image", "path"])
        labels = keep_numbers(
            findings, LABELS, read_rows(findings, LABELS, ["image", "number"]), "number"
        )
        classes = keep_numbers(
            findings, CLASSES, read_rows(findings, CLASSES, ["number", "label"]), "number"
        )
        for file, table, key in (
            (IMAGES, images, "image"),
            (LABELS, labels, "image"),
            (CLASSES, classes, "number"),
        ):
            double = table[key][table[key].duplicated()].astype(str).tolist()
            findings.add_all(f"numbers are given twice in {file}", double, "each must stand once")
        findings.stop()
        numbers = images["image"].map(labels.set_index("image")["number"])
        unlabelled = images["image"][numbers.isna()].tolist()
        findings.add_all(
            f"images of {IMAGES} have no class", unlabelled, f"give each one in {LABELS}"
        )
        unnamed = labels["image"][~labels["image"].isin(images["image"])].tolist()
        findings.add_all(f"images of {LABELS} have no path", unnamed, f"give each one in {IMAGES}")
        names = numbers.map(classes.set_index("number")["label"])
        nameless = sorted(numbers[numbers.notna() & names.isna()].astype(int).unique())
        findings.add_all(
            f"classes of {LABELS} have no name",
            list(map(str, nameless)),
            f"give each one in {CLASSES}",
        )
        findings.stop()
        strangers = images["path"][images["path"].str.partition("/")[0] != names].tolist()
        findings.add_all(
            "images lie in the folder of another class", strangers, f"check {LABELS} and {CLASSES}"
        )
        role = np.where(numbers <= LAST_TRAINING_CLASS, "train", "test")
        protocol = np.where(role == "train", "", "test")
        return rows_of("images/" + images["path"], names, "", role, protocol)
