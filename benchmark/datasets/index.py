"""The index table that every published dataset is read into, its checks, and the dataset it becomes.

One row per image and use, with the text columns

path      file of the image, relative to the root, with "/"
label     class
category  coarser group of the class, "" without one
role      train; test (each image queries all the others of its protocol); query or gallery
protocol  name of the evaluation that the row belongs to, "" for train
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from benchmark.core.options import option
from benchmark.datasets.base import Dataset, DatasetLoader, ImageSet, Protocol, fingerprint_of
from benchmark.datasets.io.files import ReducingOpener
from benchmark.datasets.io.findings import Findings
from benchmark.datasets.io.packed import PackedImages
from benchmark.datasets.io.roots import check_root, missing_files

COLUMNS = ("path", "label", "category", "role", "protocol")

Values = pd.Series | np.ndarray | str


@dataclass(frozen=True, kw_only=True)
class RootConfig:
    """What the configurations of all published datasets share."""

    root: str = option(help="directory that the dataset was unpacked into")
    allow_counts: bool = option(
        False, help="whether to go on when the numbers of images are not the published ones"
    )


@dataclass(frozen=True, kw_only=True)
class IndexConfig(RootConfig):
    """As RootConfig, for datasets whose images may be read from a packed copy."""

    packed: int | None = option(
        None,
        at_least=1,
        help="shorter side of the packed copy to read the images from; null reads the files",
    )


class IndexedLoader(DatasetLoader):
    """Loads a published dataset: subclasses read its lists into an index table, the rest is shared."""

    Config: ClassVar[type] = IndexConfig
    name: ClassVar[str]
    roles: ClassVar[tuple[str, ...]] = ("train", "test")  # roles that must have images
    sources: ClassVar[
        Mapping[str, str]
    ] = {}  # part of ``expected`` -> the file that decides its counts

    @abstractmethod
    def read(self, findings: Findings) -> pd.DataFrame:
        """Returns the index table of the dataset at ``findings.root``; what is wrong goes into the findings."""

    def more_counts(self, table: pd.DataFrame) -> dict[str, dict[str, int]]:
        """Returns counts beside those of the image sets, for ``expected`` to be compared with."""
        return {}

    def table(self) -> pd.DataFrame:
        """Returns the checked index table; raises DataError with everything that is wrong with the files.

        Counts are not compared with the published ones.
        """
        findings = Findings(self.name, Path(self.config.root))
        check_root(findings, self.archives, images=self._packed_side is None)
        table = self.read(findings)[list(COLUMNS)]
        _check_uses(findings, table, self.roles)
        if self._packed_side is None:
            paths = list(dict.fromkeys(table["path"].tolist()))
            missing = missing_files(findings, paths)
            findings.add_all(
                f"of {len(paths):,} images are missing", missing, "unpack the archive again"
            )
        findings.stop()
        return table

    def load(self) -> Dataset:
        """Returns the dataset; raises DataError with everything that is wrong."""
        table, root = self.table(), Path(self.config.root)
        packed = None if self._packed_side is None else PackedImages(root, self._packed_side)
        if packed:
            findings = Findings(self.name, packed.folder)
            findings.add_all(
                "images were not packed", packed.missing(table["path"].unique()), "pack them again"
            )
            findings.stop()
        train = image_sets(root, table[table["role"] == "train"], packed)["train"]
        protocols = {
            name: self.protocol(name, image_sets(root, rows, packed))
            for name, rows in table[table["role"] != "train"].groupby("protocol", sort=False)
        }
        fingerprint = self.fingerprint(table, packed.digest if packed else "")
        dataset = Dataset(self.name, train, protocols, fingerprint, self.metrics)
        dataset.counts.update(self.more_counts(table))
        self.check_counts(dataset.counts)
        return dataset

    def protocol(self, name: str, sets: Mapping[str, ImageSet]) -> Protocol:
        """Returns the protocol made of the image sets of these roles: test alone, or query and gallery."""
        return (
            Protocol(sets["test"]) if "test" in sets else Protocol(sets["query"], sets["gallery"])
        )

    def fingerprint(self, table: pd.DataFrame, images: str = "") -> str:
        """Returns the digest of the index table and of what identifies the bytes of the images, where that is known."""
        return fingerprint_of(self.name, *("\n".join(table[column]) for column in COLUMNS), images)

    def check_counts(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        """Raises DataError with each count that is not the published one, unless that is allowed."""
        if self.config.allow_counts:
            return
        findings = Findings(self.name, Path(self.config.root))
        wrong = []
        for part, expected in self.expected.items():
            gaps = [
                f"{found:,} {what}, {abs(found - wanted):,} {'more' if found > wanted else 'fewer'} than {wanted:,}"
                for what, wanted in expected.items()
                if (found := counts.get(part, {}).get(what, 0)) != wanted
            ]
            if gaps:
                wrong.append(f"{part}, by {self.sources[part]}: {'; '.join(gaps)}")
        advice = "get the published files, or set allow_counts: true to go on with these"
        findings.add_all(
            f"of {len(self.expected)} parts are not of the published size", wrong, advice
        )
        findings.stop()

    @property
    def _packed_side(self) -> int | None:
        return getattr(self.config, "packed", None)


def rows_of(
    path: pd.Series, label: Values, category: Values, role: Values, protocol: Values
) -> pd.DataFrame:
    """Returns rows of an index table; each argument is one value for all rows, or one value each."""
    # plain Python text: pandas' own text columns take seconds to walk through once there are 460,000 rows
    return pd.DataFrame(
        dict(zip(COLUMNS, (path, label, category, role, protocol), strict=True)), dtype=object
    )


def _check_uses(findings: Findings, table: pd.DataFrame, roles: Sequence[str]) -> None:
    """Adds roles without images, images listed twice, classes in both splits, and classes in several categories."""
    used = set(table["role"])
    empty = [role for role in roles if role not in used]
    findings.add_all(
        f"of {len(roles)} roles have no images", empty, "the lists must give some for each"
    )
    train = table["role"] == "train"
    double = set(table["path"][table.duplicated(["path", "protocol"])])
    double |= set(table["path"][train]) & set(table["path"][~train])
    findings.add_all("images are listed twice", sorted(double), "each must be listed once")
    both = sorted(set(table["label"][train]) & set(table["label"][~train]))
    findings.add_all(
        "classes are in both splits", both, "retrieval is tested on classes that training never saw"
    )
    pairs = table[["label", "category"]].drop_duplicates()
    mixed = sorted(pairs["label"][pairs["label"].duplicated()].unique())
    findings.add_all("classes are in several categories", mixed, "each must have one")


def image_sets(
    root: Path, rows: pd.DataFrame, packed: PackedImages | None = None
) -> dict[str, ImageSet]:
    """Returns the image set of each role; classes and categories are numbered over all of them together.

    Without rows, the one set is an empty one for training.
    """
    labels = pd.factorize(rows["label"], sort=True)[0].astype(np.int64)
    categories = None
    if (rows["category"] != "").any():
        categories = pd.factorize(rows["category"], sort=True)[0].astype(np.int64)
    roles = rows["role"].to_numpy()
    sets = {}
    for role in rows["role"].unique().tolist() or ["train"]:
        chosen = roles == role
        paths = rows["path"][chosen].tolist()
        opener = packed.opener(paths) if packed else ReducingOpener(root, paths)
        sets[role] = ImageSet(
            labels[chosen], paths, opener, None if categories is None else categories[chosen]
        )
    return sets
