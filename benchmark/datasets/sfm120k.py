"""retrieval-SfM-120k: photographs of landmarks, clustered by 3D reconstruction (Radenovic et al., PAMI 2019).

From http://cmp.felk.cvut.cz/cnnimageretrieval/. Clusters are classes, and all of them are for training; retrieval is
evaluated on the landmark sets that ``landmarks`` names. An image is named by 32 hexadecimal digits and lies in three
folders made of its last six, the last two first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pandas as pd
from scipy.io import loadmat

from benchmark.core.errors import DataError
from benchmark.core.options import option
from benchmark.datasets import DATASETS
from benchmark.datasets.base import Archive, Dataset, fingerprint_of
from benchmark.datasets.index import IndexConfig, IndexedLoader, rows_of
from benchmark.datasets.io.findings import Findings

CLUSTERS = "retrieval-SfM-120k-imagenames-clusterids.mat"


@DATASETS.register("sfm120k", display="SfM-120k")
class Sfm120k(IndexedLoader):
    """Landmarks clustered by 3D reconstruction, evaluated on revisited Oxford and Paris."""

    @dataclass(frozen=True, kw_only=True)
    class Config(IndexConfig):
        """As IndexConfig, with the evaluation sets; a packed copy is of the training images alone."""

        landmarks: list[Literal["roxford5k", "rparis6k"]] = option(
            ["roxford5k", "rparis6k"], help="landmark sets to evaluate on"
        )
        landmarks_root: str | None = option(
            None,
            help="directory with a folder for each of them; null means the directory that holds the root",
        )

    name = "sfm120k"
    metrics = ("map",)
    archives = (Archive("ims.tar.gz", ("ims/",)), Archive(CLUSTERS, (CLUSTERS,)))
    expected: ClassVar = {"train": {"images": 117369}}  # of the usual release; no paper states it
    roles = ("train",)
    sources: ClassVar = {"train": CLUSTERS}

    def load(self) -> Dataset:
        """Returns the dataset; raises DataError with everything that is wrong, landmark sets included."""
        problems: list[str] = []
        if not self.config.landmarks:
            problems.append(
                "dataset 'sfm120k': landmarks names no set to evaluate on; allowed: roxford5k, rparis6k"
            )
        own = _loaded(super().load, problems)
        sets = [_loaded(loader.load, problems) for loader in self._landmark_loaders()]
        if problems:
            raise DataError("\n".join(problems))
        return Dataset(
            self.name,
            own.train,
            {name: protocol for found in sets for name, protocol in found.protocols.items()},
            fingerprint_of(own.fingerprint, *(found.fingerprint for found in sets)),
            self.metrics,
            own.counts
            | {name: found.counts[name] for found in sets for name in found.protocols}
            | {
                f"{found.name} {part}": found.counts[part]
                for found in sets
                for part in ("query", "gallery")
            },
        )

    def expected_counts(self) -> dict[str, dict[str, int]]:
        """Returns the published counts of the training images and of the landmark sets evaluated on."""
        found = dict(self.expected)
        for loader in self._landmark_loaders():
            found |= {f"{loader.name} {part}": numbers for part, numbers in loader.expected.items()}
        return found

    def read(self, findings: Findings) -> pd.DataFrame:
        """Returns the training images, in the order of the file."""
        cids, clusters = self._clusters(findings)
        malformed = [repr(cid)[:80] for cid in cids if len(cid) < 6 or not cid.isalnum()]
        findings.add_all(
            f"malformed names in {CLUSTERS}",
            malformed,
            "each must be six or more letters and digits",
        )
        findings.stop()
        paths = [f"ims/{cid[-2:]}/{cid[-4:-2]}/{cid[-6:-4]}/{cid}" for cid in cids]
        return rows_of(pd.Series(paths, dtype=object), clusters.astype(str), "", "train", "")

    def _landmark_loaders(self) -> list[IndexedLoader]:
        parent = self.config.landmarks_root
        parent = Path(self.config.root).resolve().parent if parent is None else Path(parent)
        loaders = []
        for name in dict.fromkeys(self.config.landmarks):
            target = DATASETS[name].target
            loaders.append(
                target(
                    target.Config(root=str(parent / name), allow_counts=self.config.allow_counts)
                )
            )
        return loaders

    def _clusters(self, findings: Findings) -> tuple[list[str], np.ndarray]:
        """Returns the names of the images and their clusters (N,)."""
        try:
            content = loadmat(
                findings.root / CLUSTERS, variable_names=["cids", "cluster"], squeeze_me=True
            )
            cids = [str(cid) for cid in np.atleast_1d(content["cids"])]
            clusters = np.atleast_1d(content["cluster"]).astype(np.int64)
        except KeyError as error:
            findings.add(f"{CLUSTERS} has no {error}; needed: cids, cluster")
        except Exception as error:  # a damaged file fails in any way at all
            findings.add(f"cannot read {CLUSTERS} ({error}); get it again")
        else:
            if clusters.shape != (len(cids),) or not cids:
                findings.add(
                    f"{CLUSTERS} has {len(cids)} cids and clusters {clusters.shape}; needed: one each per image"
                )
        findings.stop()
        return cids, clusters


def _loaded(load: Callable[[], Dataset], problems: list[str]) -> Dataset | None:
    """Returns what a loader gives; what is wrong goes into ``problems``."""
    try:
        return load()
    except DataError as error:
        problems.append(str(error))
        return None
