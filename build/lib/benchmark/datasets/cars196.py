"""Cars196: photographs of 196 models of cars (Krause et al., 3dRR 2013).

From http://ai.stanford.edu/~jkrause/car196/ (no longer served; copies carry the same digests), in
one of two layouts: all images in ``car_ims/``, or the halves of a split made for classification in
``cars_train/`` and ``cars_test/`` beside ``devkit/``. Retrieval papers do not use that split: they
train on the first 98 classes and test on the others (Oh Song et al., CVPR 2016, section 7).
"""

from typing import ClassVar

import numpy as np
import pandas as pd

from benchmark.core.paths import leaves_root
from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive, Findings
from benchmark.datasets.index import IndexedLoader, index_rows
from benchmark.datasets.io.matlab_and_pickle import read_matlab, texts, whole_numbers

ANNOTATIONS, META = "cars_annos.mat", "devkit/cars_meta.mat"
TRAIN, TEST = "devkit/cars_train_annos.mat", "cars_test_annos_withlabels.mat"
# file of annotations, its field of names, and the folder before them
WHOLE = ((ANNOTATIONS, "relative_im_path", ""),)
HALVES = ((TRAIN, "fname", "cars_train/"), (TEST, "fname", "cars_test/"))
FOLDERS = ("car_ims", "cars_train", "cars_test")
LAST_TRAINING_CLASS = 98


@DATASETS.register("cars196", display="Cars196")
class Cars196(IndexedLoader):
    """Models of cars: classes 1 to 98 to train, 99 to 196 to test."""

    name = "cars196"
    archives = (
        Archive("car_ims.tgz", ("car_ims/",), "d5c8f0aa497503f355e17dc7886c3f14"),
        Archive(ANNOTATIONS, (ANNOTATIONS,), "b407c6086d669747186bd1d764ff9dbc"),
    )
    other_archives = (
        Archive("cars_train.tgz", ("cars_train/",), "065e5b463ae28d29e77c1b4b166cfe61"),
        Archive("cars_test.tgz", ("cars_test/",), "4ce7ebf6a94d07f1952d94dd34c4d501"),
        Archive("car_devkit.tgz", (TRAIN, META), "c3b158d763b6e2245038c8ad08e45376"),
        Archive(TEST, (TEST,), "b0a2b23655a3edd16d84508592a98d10"),
    )
    # 16,185 images; the halves as in Oh Song et al., section 7
    expected: ClassVar = {
        "train": {"images": 8054, "classes": 98},
        "test": {"images": 8131, "classes": 98},
    }
    sources: ClassVar = {"train": "its annotations", "test": "its annotations"}

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the table of the annotations, in their order."""
        halved = self.layout(findings.root) == self.other_archives
        named = META if halved else ANNOTATIONS
        with findings.reading(named):
            names = texts(*read_matlab(findings.root / named, "class_names"))
        paths: list[str] = []
        numbers: list[int] = []
        for file, field, folder in HALVES if halved else WHOLE:
            with findings.reading(file):
                (images,) = read_matlab(findings.root / file, "annotations")
                here = [f"{folder}{path}" for path in images[field]]
                classes = whole_numbers(images["class"]).tolist()
            # each must lie right in a folder of images
            apart = [(path, *path.rpartition("/")) for path in here]
            wrong = [
                path
                for path, parent, _, name in apart
                if leaves_root(path) or parent not in FOLDERS or not name
            ]
            findings.add_all(f"paths in {file} outside its folder of images", wrong, "get it again")
            nameless = sorted({number for number in classes if not 1 <= number <= len(names)})
            advice = "class_names must have each one"
            findings.add_all(f"classes without a name in {file}", nameless, advice)
            paths, numbers = paths + here, numbers + classes
        findings.stop()
        # the number keeps classes apart whose names are alike, and puts them in their order
        labels = [f"{number:03d} {names[number - 1]}" for number in numbers]
        train = np.array(numbers) <= LAST_TRAINING_CLASS
        roles, protocols = np.where(train, "train", "test"), np.where(train, "", "test")
        return index_rows(paths, labels, "", roles, protocols)
