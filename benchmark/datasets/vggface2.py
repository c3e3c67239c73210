"""VGGFace2: faces of 9,131 people, in two splits of different people.

Cao et al., FG 2018. No longer distributed: bring your own. Each split is a folder with a folder for
each person, and a table of the boxes around the faces, which lists its images.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import pandas as pd

from benchmark.core.options import option
from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive, Dataset, fingerprint_of
from benchmark.datasets.counts import Counts
from benchmark.datasets.faces import FaceConfig, FaceLoader
from benchmark.datasets.index import IndexedLoader, index_rows, load_all
from benchmark.datasets.io.findings import Findings
from benchmark.datasets.io.lists import read_table


@DATASETS.register("vggface2", display="VGGFace2")
class VggFace2(FaceLoader):
    """Faces to train on, evaluated on the faces of other people, and on IJB-C."""

    @dataclass(frozen=True, kw_only=True)
    class Config(FaceConfig):
        """The options of sets of faces, and the evaluation."""

        evaluated_on: list[Literal["ijbc"]] = option(
            ["ijbc"], help="further sets of faces to evaluate on, in folders beside the root"
        )

    name = "vggface2"
    lists: ClassVar = {
        "train": "bb_landmark/loose_bb_train.csv",
        "test": "bb_landmark/loose_bb_test.csv",
    }
    archives = (
        Archive("vggface2_train.tar.gz", ("train/",)),
        Archive("vggface2_test.tar.gz", ("test/",)),
        Archive("bb_landmark.tar.gz", tuple(lists.values())),
    )
    # Smooth-AP table 1, whose 3.31 million training images are those of both splits
    expected: ClassVar = {"train": {"classes": 8631}, "test": {"images": 169396, "classes": 500}}
    further = ("X", "Y", "W", "H")

    def read_list(self, findings: Findings, file: str, role: str, protocol: str) -> pd.DataFrame:
        """Return the index rows of one split: its names are ``<person>/<image>``."""
        rows = read_table(findings, file, ["NAME_ID"], self.further)
        names = rows["NAME_ID"]
        wrong = [repr(name)[:80] for name in names if name.count("/") != 1 or name.startswith("/")]
        findings.add_all(f"malformed names in {file}", wrong, "each must be <person>/<image>")
        person = [name.partition("/")[0] for name in names]
        index = index_rows(f"{self.above}{role}/" + names + ".jpg", person, "", role, protocol)
        return index.join(rows[list(self.further)])

    def load(self) -> Dataset:
        """Return the dataset; raise DataError with everything wrong, IJB-C included."""
        own, *loaded = load_all([super().load, *(one.load for one in self._others().values())])
        merged = {name: part for one in (own, *loaded) for name, part in one.protocols.items()}
        counts = {name: part for one in loaded for name, part in one.counts.items()}
        counts.pop("train", None)
        return replace(
            own,
            protocols=merged,
            fingerprint=fingerprint_of(own.fingerprint, *(one.fingerprint for one in loaded)),
            counts={**own.counts, **counts},
            images_fingerprint="",  # the new fingerprint
        )

    def expected_counts(self) -> Counts:
        """Return the published counts of both splits, and of the other sets of faces."""
        further = (one.expected for one in self._others().values())
        return {key: counts for part in (self.expected, *further) for key, counts in part.items()}

    def _others(self) -> dict[str, IndexedLoader]:
        config = self.config
        return self.beside(config.evaluated_on, margin=config.margin, aligned=config.aligned)
