"""Stanford Online Products: photographs of products from eBay (Oh Song et al., CVPR 2016).

From https://cvgl.stanford.edu/projects/lifted_struct/, with the split in its two lists. The
category of a product is the name of its folder without ``_final``.
"""

from typing import ClassVar

import pandas as pd

from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive, Findings
from benchmark.datasets.index import IndexedLoader, index_rows
from benchmark.datasets.io.lists import read_rows

FIELDS = ("image_id", "class_id", "super_class_id", "path")


@DATASETS.register("sop", display="SOP")
class Sop(IndexedLoader):
    """Products for sale, in 12 categories."""

    name = "sop"
    lists: ClassVar = {"train": "Ebay_train.txt", "test": "Ebay_test.txt"}
    archives = (Archive("Stanford_Online_Products.zip", (*lists.values(), "bicycle_final/")),)
    # FastAP section 5; categories: FastAP table 4
    expected: ClassVar = {
        "train": {"images": 59551, "classes": 11318, "categories": 12},
        "test": {"images": 60502, "classes": 11316, "categories": 12},
    }

    def read_list(self, findings: Findings, file: str, role: str, protocol: str) -> pd.DataFrame:
        """Return the index rows of one list."""
        rows = read_rows(findings, file, FIELDS, header=" ".join(FIELDS))
        category = [path.partition("/")[0].removesuffix("_final") for path in rows["path"]]
        return index_rows(rows["path"], rows["class_id"], category, role, protocol)
