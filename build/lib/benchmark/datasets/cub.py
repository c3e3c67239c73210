"""CUB-200-2011: photographs of 200 bird species (Wah et al., Caltech CNS-TR-2011-001, 2011).

From https://www.vision.caltech.edu/datasets/cub_200_2011/, for non-commercial research and
education. Retrieval papers train on the first 100 classes and test on the others;
``train_test_split.txt``, made for classification, is not used (ROADMAP, section 4).
"""

from typing import ClassVar

import numpy as np
import pandas as pd

from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive, Findings
from benchmark.datasets.index import IndexedLoader, index_rows
from benchmark.datasets.io.lists import read_rows, select_numbers

IMAGES, LABELS, CLASSES = "images.txt", "image_class_labels.txt", "classes.txt"
LAST_TRAINING_CLASS = 100


@DATASETS.register("cub", display="CUB-200-2011")
class Cub(IndexedLoader):
    """Bird species: classes 1 to 100 to train, 101 to 200 to test."""

    name = "cub"
    provided = ("images/", IMAGES, LABELS, CLASSES)
    archives = (Archive("CUB_200_2011.tgz", provided, "97eceeb196236b17998738112f37df78"),)
    # ROADMAP section 4: 11,788 images of 200 classes; the halves follow from the class numbers
    expected: ClassVar = {
        "train": {"images": 5864, "classes": 100},
        "test": {"images": 5924, "classes": 100},
    }
    sources: ClassVar = {"train": IMAGES, "test": IMAGES}

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the table joined from the three lists, in the order of images.txt."""
        images = read_rows(findings, IMAGES, ["image", "path"], once="image")
        labels = read_rows(findings, LABELS, ["image", "number"], once="image")
        labels = select_numbers(findings, LABELS, labels, "number")
        classes = read_rows(findings, CLASSES, ["number", "label"])
        classes = select_numbers(findings, CLASSES, classes, "number")
        twice = classes["number"][classes["number"].duplicated()]
        findings.add_all(f"numbers given twice in {CLASSES}", twice, "each must stand once")
        findings.stop()
        numbers = images["image"].map(labels.set_index("image")["number"])
        names = numbers.map(classes.set_index("number")["label"])
        nameless = numbers[numbers.notna() & names.isna()].astype(int)
        pathless = labels["image"][~labels["image"].isin(images["image"])]
        for what, offenders, file in (
            (f"images of {IMAGES} without a class", images["image"][numbers.isna()], LABELS),
            (f"images of {LABELS} without a path", pathless, IMAGES),
            (f"classes of {LABELS} without a name", sorted(set(nameless)), CLASSES),
        ):
            findings.add_all(what, offenders, f"give each one in {file}")
        findings.stop()
        folders = [path.partition("/")[0] for path in images["path"]]
        findings.add_all(
            "images in the folder of another class",
            images["path"][names != folders],
            f"check {LABELS} and {CLASSES}",
        )
        train = numbers <= LAST_TRAINING_CLASS
        roles, protocols = np.where(train, "train", "test"), np.where(train, "", "test")
        return index_rows("images/" + images["path"], names, "", roles, protocols)
