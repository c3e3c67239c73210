"""GPR1200: ten images of each of 1,200 classes of six kinds (Schall et al., MMM 2022).

From https://github.com/Visual-Computing/GPR1200, for non-commercial research and education; all in
``images/``, named ``<class>_<original name>``. For evaluation only, of networks that were not
trained on it. Its measure is the mean average precision over all images as queries. The authors'
code (eval/utils.py) leaves the query in the ranking, where it finds itself first: so does this.
"""

import os
from collections.abc import Mapping
from typing import ClassVar

import pandas as pd

from benchmark.core.documents import whole_number
from benchmark.core.paths import is_text
from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive, Findings, ImageSet, Protocol
from benchmark.datasets.index import IndexedLoader, index_rows
from benchmark.datasets.io.images import IMAGE_SUFFIXES, is_ignored

FOLDER = "images"
# where the classes come from, 200 of each, in the order of their numbers (eval/GPR1200.py)
ORIGINS = ("landmarks", "inaturalist", "sketches", "instre", "products", "faces")
CLASSES = 1200


@DATASETS.register("gpr1200", display="GPR1200")
class Gpr1200(IndexedLoader):
    """Images of many kinds, for evaluation only."""

    name = "gpr1200"
    trains = False
    metrics = ("map",)
    roles = ("test",)
    archives = (Archive("GPR1200.zip", (f"{FOLDER}/",)),)
    expected: ClassVar = {"test": {"images": 12_000, "classes": CLASSES, "categories": 6}}
    sources: ClassVar = {"test": f"{FOLDER}/"}

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the table of the images in the folder, class after class."""
        found, wrong = [], []
        for name in os.listdir(findings.root / FOLDER):
            text, _, rest = name.partition("_")
            known = rest and whole_number(text) in range(CLASSES) and is_text(name)
            if known and os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES:
                found.append((int(text), name))
            elif not is_ignored(name):
                wrong.append(name)
        found.sort()
        findings.add_all(
            f"files in {FOLDER}/ that are no image of a class",
            sorted(wrong),
            f"expected <class>_<name> with a class of 0 to {CLASSES - 1}; move others away",
        )
        labels = [f"{number:04d}" for number, _ in found]
        origins = [ORIGINS[number * len(ORIGINS) // CLASSES] for number, _ in found]
        paths = [f"{FOLDER}/{name}" for _, name in found]
        return index_rows(paths, labels, origins, "test", "test")

    def protocol(self, name: str, sets: Mapping[str, ImageSet]) -> Protocol:
        """Return the protocol in which the gallery holds the queries as well."""
        return Protocol(sets["test"], sets["test"])
