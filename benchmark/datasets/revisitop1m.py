"""R1M: a million photographs without landmarks of Oxford or Paris, as distractors.

Radenovic et al., CVPR 2018, section 3.3; from http://ptak.felk.cvut.cz/revisitop/revisitop1m/. For
evaluation only: the sets ``roxford_1m`` and ``rparis_1m`` of the landmark training sets add these
images to a gallery.
"""

from collections.abc import Mapping
from typing import ClassVar

import pandas as pd

from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive, Dataset, ImageSet, Protocol
from benchmark.datasets.index import IndexedLoader, RootConfig, index_rows
from benchmark.datasets.io.findings import Findings
from benchmark.datasets.io.lists import read_rows, report_duplicates

LIST = "revisitop1m.txt"
PARTS = 100  # archives of the images


@DATASETS.register("revisitop1m", display="R1M distractors")
class RevisitOp1M(IndexedLoader):
    """Distractors for the revisited landmark sets, for evaluation only."""

    Config = RootConfig
    name = "revisitop1m"
    metrics = ("map",)
    trains = False
    roles = ("query",)
    archives = (
        *(Archive(f"revisitop1m.{part}.tar.gz", ("jpg/",)) for part in range(1, PARTS + 1)),
        Archive(LIST, (LIST,)),
    )
    # Radenovic et al., CVPR 2018, section 3.3
    expected: ClassVar = {"distractors": {"images": 1001001}}
    sources: ClassVar = {"distractors": LIST}

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the distractors in the order of the list: one path below ``jpg/`` a line."""
        rows = read_rows(findings, LIST, ["path"])
        report_duplicates(findings, LIST, rows["path"])
        return index_rows("jpg/" + rows["path"], rows["path"], "", "query", self.name)

    def protocol(self, name: str, sets: Mapping[str, ImageSet]) -> Protocol:
        """Return the protocol whose queries are the distractors, the only images."""
        return Protocol(sets["query"])

    def counts(self, table: pd.DataFrame, dataset: Dataset) -> dict[str, dict[str, int]]:
        """Return the number of distractors."""
        return {"distractors": {"images": len(table)}}
