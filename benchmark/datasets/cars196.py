"""Cars196: photographs of 196 models of cars (Krause et al., 3dRR 2013).

From http://ai.stanford.edu/~jkrause/car196/ (no longer served; copies carry the same digests), all
images in ``car_ims/``. Retrieval papers train on the first 98 classes and test on the others (Oh
Song et al., CVPR 2016, section 7); the split in ``cars_annos.mat``, made for classification, is not
used.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd

from benchmark.core.paths import leaves_root
from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive
from benchmark.datasets.index import IndexedLoader, index_rows
from benchmark.datasets.io.findings import Findings
from benchmark.datasets.io.matlab import read_matlab

ANNOTATIONS = "cars_annos.mat"
LAST_TRAINING_CLASS = 98


@DATASETS.register("cars196", display="Cars196")
class Cars196(IndexedLoader):
    """Models of cars: classes 1 to 98 to train, 99 to 196 to test."""

    name = "cars196"
    archives = (
        Archive("car_ims.tgz", ("car_ims/",), "d5c8f0aa497503f355e17dc7886c3f14"),
        Archive(ANNOTATIONS, (ANNOTATIONS,), "b407c6086d669747186bd1d764ff9dbc"),
    )
    # 16,185 images; the halves as in Oh Song et al., section 7
    expected: ClassVar = {
        "train": {"images": 8054, "classes": 98},
        "test": {"images": 8131, "classes": 98},
    }
    sources: ClassVar = {"train": ANNOTATIONS, "test": ANNOTATIONS}

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the table of the annotations, in their order."""
        try:
            content: Any = read_matlab(findings.root / ANNOTATIONS, ("annotations", "class_names"))
            images, names = content["annotations"], list(content["class_names"])
            paths = [str(path) for path in images["relative_im_path"]]
            numbers = np.array([int(value.item()) for value in images["class"]], dtype=np.int64)
            matched = len(paths) == len(numbers) > 0
        except Exception as error:  # a damaged file makes the reader fail in any way
            findings.add(f"cannot read {ANNOTATIONS} ({error}); get it again")
            findings.stop()
        if not matched:
            findings.add(f"{ANNOTATIONS} has {len(paths)} paths and {len(numbers)} classes")
            findings.stop()
        wrong = [path for path in paths if leaves_root(path) or not path.startswith("car_ims/")]
        findings.add_all(f"paths in {ANNOTATIONS} outside car_ims/", wrong, "get it again")
        nameless = sorted({int(n) for n in numbers if not 1 <= n <= len(names)})
        findings.add_all(
            f"classes without a name in {ANNOTATIONS}", nameless, "class_names must have each one"
        )
        findings.stop()
        # the number keeps classes apart whose names are alike, and puts them in their order
        labels = [f"{number:03d} {names[number - 1]}" for number in numbers]
        train = numbers <= LAST_TRAINING_CLASS
        roles, protocols = np.where(train, "train", "test"), np.where(train, "", "test")
        return index_rows(pd.Series(paths, dtype=object), labels, "", roles, protocols)
