"""In-Shop Clothes Retrieval of DeepFashion: garments of an online shop (Liu et al., CVPR 2016).

From https://mmlab.ie.cuhk.edu.hk/projects/DeepFashion/InShopRetrieval.html, for non-commercial research. Query
images search the gallery; the category of a garment is two folders of its path, as in ``WOMEN/Dresses``.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd

from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive
from benchmark.datasets.index import IndexedLoader, rows_of
from benchmark.datasets.io.findings import Findings
from benchmark.datasets.io.lists import keep_words, read_rows

LIST = "list_eval_partition.txt"
FIELDS = ("path", "item_id", "evaluation_status")
HEADER = "image_name item_id evaluation_status"


@DATASETS.register("inshop", display="In-Shop")
class InShop(IndexedLoader):
    """Garments of an online shop: queries against a gallery."""

    name = "inshop"
    archives = (Archive("img.zip", ("img/",)), Archive(LIST, (LIST,)))
    # FastAP section 5; categories: FastAP table 4.
    expected: ClassVar = {
        "train": {"images": 25882, "classes": 3997},
        "test": {"images": 14218, "classes": 3985},
        "test gallery": {"images": 12612, "classes": 3985},
        "all": {"images": 52712, "classes": 7982, "categories": 23},
    }
    roles = ("train", "query", "gallery")
    sources: ClassVar = dict.fromkeys(expected, LIST)

    def read(self, findings: Findings) -> pd.DataFrame:
        """Returns the rows of the partition list, in its order."""
        rows = read_rows(findings, LIST, FIELDS, header=HEADER, skip=1)
        if len(rows):
            self._check_length(findings, len(rows))
        rows = keep_words(findings, LIST, rows, FIELDS[2], ("train", "query", "gallery"))
        parts = rows["path"].str.split("/", expand=True).reindex(columns=range(4))
        shallow = parts[3].isna()
        wrong = rows["path"][shallow].tolist()
        findings.add_all(
            f"malformed paths in {LIST}", wrong, "each must read img/<group>/<kind>/.../<image>"
        )
        rows, category = rows[~shallow], (parts[1] + "/" + parts[2])[~shallow]
        # an item shown in two categories counts to the one listed first, so that every class has one category
        category = category.groupby(rows["item_id"]).transform("first")
        role = rows["evaluation_status"]
        return rows_of(
            rows["path"], rows["item_id"], category, role, np.where(role == "train", "", "test")
        )

    def more_counts(self, table: pd.DataFrame) -> dict[str, dict[str, int]]:
        """Returns the counts of all three parts together."""
        names = {"images": "path", "classes": "label", "categories": "category"}
        return {"all": {what: int(table[column].nunique()) for what, column in names.items()}}

    def _check_length(self, findings: Findings, found: int) -> None:
        """Adds a finding unless the number on the first line is that of the rows."""
        lines = (
            (findings.root / LIST).read_text(encoding="utf-8-sig", errors="replace").splitlines()
        )
        if lines[0].strip() != str(found):
            findings.add(
                f"{LIST}: line 1 is {lines[0][:40]!r}, but {found:,} rows can be read; unpack it again"
            )
