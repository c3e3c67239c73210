"""In-Shop Clothes Retrieval of DeepFashion: garments of an online shop (Liu et al., CVPR 2016).

From https://mmlab.ie.cuhk.edu.hk/projects/DeepFashion/InShopRetrieval.html, for non-commercial
research. Query images search the gallery; the category of a garment is two folders of its path, as
in ``WOMEN/Dresses``.
"""

from typing import ClassVar

import numpy as np
import pandas as pd

from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive, Dataset, Findings
from benchmark.datasets.index import IndexedLoader, index_rows
from benchmark.datasets.io.lists import read_rows, select

LIST = "list_eval_partition.txt"
FIELDS = ("path", "item_id", "evaluation_status")
HEADER = "image_name item_id evaluation_status"


@DATASETS.register("inshop", display="In-Shop")
class InShop(IndexedLoader):
    """Garments of an online shop: queries against a gallery."""

    name = "inshop"
    archives = (Archive("img.zip", ("img/",)), Archive(LIST, (LIST,)))
    # FastAP section 5; categories: FastAP table 4
    expected: ClassVar = {
        "train": {"images": 25882, "classes": 3997},
        "test": {"images": 14218, "classes": 3985},
        "test gallery": {"images": 12612, "classes": 3985},
        "all": {"images": 52712, "classes": 7982, "categories": 23},
    }
    roles = ("train", "query", "gallery")
    sources: ClassVar = dict.fromkeys(expected, LIST)

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the rows of the partition list, in its order."""
        rows = read_rows(findings, LIST, FIELDS, header=HEADER, skip=1)
        if len(rows):
            with open(findings.root / LIST, encoding="utf-8-sig") as file:
                stated = file.readline().strip()
            if stated != str(len(rows)):
                problem = f"line 1 is {stated[:40]!r}, but {len(rows):,} rows can be read"
                findings.problems.append(f"{LIST}: {problem}; unpack it again")
        valid = rows[FIELDS[2]].isin(self.roles)
        advice = f"{FIELDS[2]} must be one of {', '.join(self.roles)}"
        rows = select(findings, LIST, rows, valid, advice)
        parts = rows["path"].map(lambda path: path.split("/"))
        deep = parts.map(len) >= 4
        form = "each must read img/<group>/<kind>/.../<image>"
        findings.add_all(f"malformed paths in {LIST}", rows["path"][~deep], form)
        path, item, role = (rows[deep][field] for field in FIELDS)
        category = parts[deep].map(lambda part: "/".join(part[1:3]))
        # an item in two categories counts to the one listed first: every class has one category
        first = category.groupby(item).first()
        return index_rows(path, item, item.map(first), role, np.where(role == "train", "", "test"))

    def counts(self, table: pd.DataFrame, dataset: Dataset) -> dict[str, dict[str, int]]:
        """Return the counts of each part, and of all three together."""
        kinds = {"images": "path", "classes": "label", "categories": "category"}
        together = {kind: int(table[column].nunique()) for kind, column in kinds.items()}
        return {**dataset.counts, "all": together}
