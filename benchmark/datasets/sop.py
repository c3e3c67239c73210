"""Stanford Online Products: photographs of products from eBay (Oh Song et al., CVPR 2016).

From https://cvgl.stanford.edu/projects/lifted_struct/, with the split in its two lists. The category of a product
is the name of its folder without ``_final``.
"""

from __future__ import annotations

from typing import ClassVar

import pandas as pd

from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive
from benchmark.datasets.index import IndexedLoader, rows_of
from benchmark.datasets.io.findings import Findings
from benchmark.datasets.io.lists import read_rows

TRAIN, TEST = "Ebay_train.txt", "Ebay_test.txt"
FIELDS = ("image_id", "class_id", "super_class_id", "path")


@DATASETS.register("sop", display="SOP")
class Sop(IndexedLoader):
    """Products for sale, in 12 categories."""

    name = "sop"
    archives = (Archive("Stanford_Online_Products.zip", (TRAIN, TEST, "bicycle_final/")),)
    # FastAP section 5; categories: FastAP table 4.
    expected: ClassVar = {
        "train": {"images": 59551, "classes": 11318, "categories": 12},
        "test": {"images": 60502, "classes": 11316, "categories": 12},
    }
    sources: ClassVar = {"train": TRAIN, "test": TEST}

    def read(self, findings: Findings) -> pd.DataFrame:
        """Returns the rows of the two lists, in their order."""
        return pd.concat([self._part(findings, TRAIN, "train"), self._part(findings, TEST, "test")])

    def _part(self, findings: Findings, file: str, role: str) -> pd.DataFrame:
        rows = read_rows(findings, file, FIELDS, header=" ".join(FIELDS))
        category = rows["path"].str.partition("/")[0].str.removesuffix("_final")
        return rows_of(rows["path"], rows["class_id"], category, role, role.removeprefix("train"))
