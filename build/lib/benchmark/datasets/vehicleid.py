"""PKU VehicleID: vehicles seen by traffic cameras (Liu et al., CVPR 2016).

From https://www.pkuml.org/resources/pku-vehicleid.html, on request, for research. Three test lists
of 800, 1,600 and 2,400 vehicles are the protocols small, medium and large. The category of a
vehicle is its model where ``attribute/model_attr.txt`` gives one (roughly half of the training
vehicles), else ``unknown``, which is numbered after all models.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pandas as pd

from benchmark.core.options import option
from benchmark.core.seeding import derive
from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive, Dataset, Findings, ImageSet, Protocol
from benchmark.datasets.index import IndexConfig, IndexedLoader, index_rows
from benchmark.datasets.io.lists import read_rows

MODELS = "attribute/model_attr.txt"
UNKNOWN = "unknown"
REPEATS = 10  # random galleries of the dataset's own protocol
GALLERY_SEED = 0


@DATASETS.register("vehicleid", display="VehicleID")
class VehicleId(IndexedLoader):
    """Vehicles seen by traffic cameras, in three test sizes."""

    @dataclass(frozen=True, kw_only=True)
    class Config(IndexConfig):
        """The options of indexed datasets, and the protocol."""

        protocol: Literal["all_others", "random_gallery"] = option(
            "all_others",
            help="all_others: each test image queries the others of its subset (Smooth-AP); "
            "random_gallery: one image of each vehicle is the gallery of the rest, drawn 10 times "
            "with fixed seeds (the dataset's own)",
        )

    name = "vehicleid"
    lists: ClassVar = {
        "train": "train_test_split/train_list.txt",
        "small": "train_test_split/test_list_800.txt",
        "medium": "train_test_split/test_list_1600.txt",
        "large": "train_test_split/test_list_2400.txt",
    }
    sources: ClassVar = {"models": MODELS}
    archives = (Archive("VehicleID_V1.0.zip", ("image/", *lists.values(), MODELS)),)
    # Smooth-AP section 5.1; models: FastAP table 4
    expected: ClassVar = {
        "train": {"images": 110178, "classes": 13134},
        "small": {"images": 7332, "classes": 800},
        "medium": {"images": 12995, "classes": 1600},
        "large": {"images": 20038, "classes": 2400},
        "models": {"categories": 250},
    }

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the rows of the four lists, with the models as categories."""
        table = super().read(findings)
        rows = read_rows(findings, MODELS, ["vehicle", "model"], once="vehicle")
        models = dict(zip(rows["vehicle"], rows["model"], strict=True))
        self.models = len(set(models.values()))  # used or not
        return table.assign(category=[models.get(vehicle, UNKNOWN) for vehicle in table["label"]])

    def read_list(self, findings: Findings, file: str, role: str, protocol: str) -> pd.DataFrame:
        """Return the index rows of one list, without categories."""
        rows = read_rows(findings, file, ["path", "vehicle"])
        return index_rows("image/" + rows["path"] + ".jpg", rows["vehicle"], "", role, protocol)

    def counts(self, table: pd.DataFrame, dataset: Dataset) -> dict[str, dict[str, int]]:
        """Return the counts, and that of the models in the attribute file, used or not."""
        return {**dataset.counts, "models": {"categories": self.models}}

    def protocol(self, name: str, sets: Mapping[str, ImageSet]) -> Protocol:
        """Return the protocol of a subset: each image queries the others, or random galleries."""
        if self.config.protocol == "all_others":
            return super().protocol(name, sets)
        labels = sets["test"].labels
        seeds = [derive(GALLERY_SEED, "vehicleid gallery", name, n) for n in range(REPEATS)]
        return Protocol(sets["test"], repeats=tuple(random_gallery(labels, seed) for seed in seeds))


def random_gallery(labels: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (indices of the queries, indices of the gallery): one random image of each class.

    labels: int64 (N,)
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    gallery = np.sort(order[np.unique(labels[order], return_index=True)[1]])
    return np.setdiff1d(np.arange(len(labels)), gallery), gallery
