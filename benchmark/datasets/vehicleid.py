"""PKU VehicleID: vehicles seen by traffic cameras (Liu et al., CVPR 2016).

From https://www.pkuml.org/resources/pku-vehicleid.html, on request, for research. Three test lists of 800, 1,600 and
2,400 vehicles are the protocols small, medium and large. The category of a vehicle is its model where
``attribute/model_attr.txt`` gives one (roughly half of the training vehicles), else ``unknown``, which is numbered
after all models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pandas as pd

from benchmark.core.options import option
from benchmark.core.seeding import derive
from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive, ImageSet, Protocol
from benchmark.datasets.index import IndexConfig, IndexedLoader, rows_of
from benchmark.datasets.io.findings import Findings
from benchmark.datasets.io.lists import read_rows

TRAIN, MODELS = "train_test_split/train_list.txt", "attribute/model_attr.txt"
TESTS = {
    name: f"train_test_split/test_list_{count}.txt"
    for name, count in (("small", 800), ("medium", 1600), ("large", 2400))
}
UNKNOWN = "unknown"
REPEATS = 10  # random galleries of the dataset's own protocol
GALLERY_SEED = 0


@DATASETS.register("vehicleid", display="VehicleID")
class VehicleId(IndexedLoader):
    """Vehicles seen by traffic cameras, in three test sizes."""

    @dataclass(frozen=True, kw_only=True)
    class Config(IndexConfig):
        """As IndexConfig, with the protocol."""

        protocol: Literal["all_others", "random_gallery"] = option(
            "all_others",
            help="all_others: each test image queries the others of its subset (Smooth-AP); random_gallery: one image "
            "of each vehicle is the gallery of the rest, drawn 10 times with fixed seeds (the dataset's own)",
        )

    name = "vehicleid"
    archives = (Archive("VehicleID_V1.0.zip", ("image/", TRAIN, *TESTS.values(), MODELS)),)
    # Smooth-AP section 5.1; models: FastAP table 4.
    expected: ClassVar = {
        "train": {"images": 110178, "classes": 13134},
        "small": {"images": 7332, "classes": 800},
        "medium": {"images": 12995, "classes": 1600},
        "large": {"images": 20038, "classes": 2400},
        "models": {"categories": 250},
    }
    sources: ClassVar = {"train": TRAIN, **TESTS, "models": MODELS}

    def read(self, findings: Findings) -> pd.DataFrame:
        """Returns the rows of the four lists, in their order."""
        models = self._models(findings)
        parts = [self._part(findings, TRAIN, "train", "", models)]
        parts += [
            self._part(findings, file, "test", protocol, models) for protocol, file in TESTS.items()
        ]
        return pd.concat(parts)

    def more_counts(self, table: pd.DataFrame) -> dict[str, dict[str, int]]:
        """Returns the number of models in the attribute file; some may belong to vehicles of none of the lists."""
        models = self._models(Findings(self.name, Path(self.config.root)))
        return {"models": {"categories": models.nunique()}}

    def protocol(self, name: str, sets: Mapping[str, ImageSet]) -> Protocol:
        """Returns the protocol of a subset: each image queries the others, or random galleries."""
        if self.config.protocol == "all_others":
            return super().protocol(name, sets)
        labels = sets["test"].labels
        draws = [
            random_gallery(labels, derive(GALLERY_SEED, "vehicleid gallery", name, n))
            for n in range(REPEATS)
        ]
        return Protocol(sets["test"], repeats=tuple(draws))

    def _models(self, findings: Findings) -> pd.Series:
        """Returns the model of each vehicle that has one."""
        rows = read_rows(findings, MODELS, ["vehicle", "model"])
        double = rows["vehicle"][rows["vehicle"].duplicated()].tolist()
        findings.add_all(f"vehicles are given twice in {MODELS}", double, "each must stand once")
        return rows.drop_duplicates("vehicle").set_index("vehicle")["model"]

    def _part(
        self, findings: Findings, file: str, role: str, protocol: str, models: pd.Series
    ) -> pd.DataFrame:
        rows = read_rows(findings, file, ["path", "vehicle"])
        category = rows["vehicle"].map(models).fillna(UNKNOWN)
        return rows_of("image/" + rows["path"] + ".jpg", rows["vehicle"], category, role, protocol)


def random_gallery(labels: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns (places that query, places of the gallery): one place of each class, drawn by ``seed``, is the gallery.

    labels: int64 (N,)
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    gallery = np.sort(order[np.unique(labels[order], return_index=True)[1]])
    return np.setdiff1d(np.arange(len(labels)), gallery), gallery
