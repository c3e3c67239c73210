"""R1M: a million photographs without landmarks of Oxford or Paris, as distractors.

Radenovic et al., CVPR 2018, section 3.3; from http://ptak.felk.cvut.cz/revisitop/revisitop1m/. For
evaluation only: the sets ``roxford_1m`` and ``rparis_1m`` of the landmark training sets add these
images to a gallery.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pandas as pd

from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive, Dataset, Protocol
from benchmark.datasets.index import IndexedLoader, RootConfig, image_sets, index_rows
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

    def load(self) -> Dataset:
        """Return the dataset, whose only images are the distractors, as queries of a protocol."""
        table, root = self.table(), Path(self.config.root)
        images = image_sets(root, table)["query"]
        counts = {"distractors": {"images": len(images)}}
        self.check_counts(counts)
        return Dataset(
            self.name,
            image_sets(root, table[:0])["train"],
            {self.name: Protocol(images)},
            self.fingerprint(table),
            self.metrics,
            counts,
        )
