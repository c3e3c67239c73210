"""retrieval-SfM-120k: photographs of landmarks, clustered by 3D reconstruction.

Radenovic et al., PAMI 2019; from http://cmp.felk.cvut.cz/cnnimageretrieval/. Clusters are classes,
all of them for training; retrieval is evaluated on the landmark sets that ``landmarks`` names. An
image is named by 32 hexadecimal digits and lies in three folders made of its last six, the last
two first.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pandas as pd

from benchmark.core.errors import DataError
from benchmark.core.options import option
from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive, Dataset, fingerprint_of
from benchmark.datasets.counts import Counts
from benchmark.datasets.index import IndexConfig, IndexedLoader, index_rows
from benchmark.datasets.io.findings import Findings
from benchmark.datasets.io.matlab import read_matlab

CLUSTERS = "retrieval-SfM-120k-imagenames-clusterids.mat"


@DATASETS.register("sfm120k", display="SfM-120k")
class Sfm120k(IndexedLoader):
    """Landmarks clustered by 3D reconstruction, evaluated on revisited Oxford and Paris."""

    @dataclass(frozen=True, kw_only=True)
    class Config(IndexConfig):
        """The options of indexed datasets (packed: the training images), and the evaluation."""

        landmarks: list[Literal["roxford5k", "rparis6k"]] = option(
            ["roxford5k", "rparis6k"], help="landmark sets to evaluate on"
        )
        landmarks_root: str | None = option(
            None,
            help="directory with a folder for each of them; null: the one that holds the root",
        )

    name = "sfm120k"
    metrics = ("map",)
    archives = (Archive("ims.tar.gz", ("ims/",)), Archive(CLUSTERS, (CLUSTERS,)))
    expected: ClassVar = {"train": {"images": 117369}}  # of the usual release; no paper states it
    roles = ("train",)
    sources: ClassVar = {"train": CLUSTERS}

    def load(self) -> Dataset:
        """Return the dataset; raise DataError with everything wrong, landmark sets included."""
        problems = []
        if not self.config.landmarks:
            problems.append(
                "dataset 'sfm120k': landmarks names no set to evaluate on; "
                "allowed: roxford5k, rparis6k"
            )
        loaded = []
        for load in (super().load, *(loader.load for loader in self._landmark_loaders())):
            try:
                loaded.append(load())
            except DataError as error:
                problems.append(str(error))
        if problems:
            raise DataError("\n".join(problems))
        own, *sets = loaded
        counts = {"train": own.counts["train"]}
        for landmarks in sets:
            counts |= {name: landmarks.counts[name] for name in landmarks.protocols}
        for landmarks in sets:
            for part in ("query", "gallery"):
                counts[f"{landmarks.name} {part}"] = landmarks.counts[part]
        return Dataset(
            self.name,
            own.train,
            {name: protocol for one in sets for name, protocol in one.protocols.items()},
            fingerprint_of(*(dataset.fingerprint for dataset in loaded)),
            self.metrics,
            counts,
        )

    def expected_counts(self) -> Counts:
        """Return the published counts of the training images and of the landmark sets."""
        expected = dict(self.expected)
        for loader in self._landmark_loaders():
            expected |= {f"{loader.name} {part}": kinds for part, kinds in loader.expected.items()}
        return expected

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the training images, in the order of the file."""
        names, clusters = self._clusters(findings)
        malformed = [repr(name)[:80] for name in names if len(name) < 6 or not name.isalnum()]
        findings.add_all(
            f"malformed names in {CLUSTERS}",
            malformed,
            "each must be six or more letters and digits",
        )
        findings.stop()
        paths = [f"ims/{name[-2:]}/{name[-4:-2]}/{name[-6:-4]}/{name}" for name in names]
        return index_rows(pd.Series(paths, dtype=object), clusters.astype(str), "", "train", "")

    def _landmark_loaders(self) -> list[IndexedLoader]:
        parent = self.config.landmarks_root
        parent = Path(self.config.root).resolve().parent if parent is None else Path(parent)
        loaders = []
        for name in dict.fromkeys(self.config.landmarks):
            target = DATASETS[name].target
            config = target.Config(root=str(parent / name), allow_counts=self.config.allow_counts)
            loaders.append(target(config))
        return loaders

    def _clusters(self, findings: Findings) -> tuple[list[str], np.ndarray]:
        """Return the names of the images and their clusters (N,)."""
        try:
            content = read_matlab(findings.root / CLUSTERS, ("cids", "cluster"))
            names, clusters = list(content["cids"]), np.asarray(content["cluster"]).astype(np.int64)
        except Exception as error:  # a damaged file makes the reader fail in any way
            findings.add(f"cannot read {CLUSTERS} ({error}); get it again")
        else:
            if clusters.shape == (len(names),) and names:
                return names, clusters
            findings.add(
                f"{CLUSTERS} has {len(names)} cids and clusters {clusters.shape}; "
                "needed: one each per image"
            )
        findings.stop()
        raise AssertionError("unreachable")
