"""Any directory of class folders with images: your own data as a retrieval dataset.

``root/<class>/*.jpg``, or ``root/<category>/<class>/*.jpg`` with ``categories: true``. A fixed seed
splits the classes, or a CSV with the columns path, label, split (train or test) and optionally
category splits the images; its paths are relative to the root and stay inside it. The fingerprint
covers paths, sizes in bytes, classes, categories and the split, not the pixels. Without a CSV every
file below the root must be an image of a class (``benchmark.datasets.io.class_folders``). Classes
with fewer than ``min_images`` images are left out, and counted; otherwise a class with a single
image, which has nothing to retrieve, is an error.
"""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from benchmark.core.options import option
from benchmark.core.paths import leaves_root
from benchmark.core.seeding import derive
from benchmark.datasets import DATASETS
from benchmark.datasets.base import Dataset, DatasetLoader, Protocol, fingerprint_of
from benchmark.datasets.index import check_uses, image_sets, index_rows
from benchmark.datasets.io.class_folders import class_images
from benchmark.datasets.io.findings import Findings
from benchmark.datasets.io.images import ReducingOpener
from benchmark.datasets.io.roots import file_sizes

SPLIT_COLUMNS = ["path", "label", "split"]


@DATASETS.register("folder", display="Folder")
class Folder(DatasetLoader):
    """Class folders below ``root``."""

    @dataclass(frozen=True, kw_only=True)
    class Config:
        """Where the images are and how they are split."""

        root: str = option(help="directory of the class folders")
        categories: bool = option(False, help="whether a category level lies above the classes")
        split_csv: str | None = option(
            None, help="CSV of path,label,split[,category]; null splits by classes"
        )
        train_share: float = option(
            0.5, above=0.0, below=1.0, help="share of the classes to train on"
        )
        split_seed: int = option(0, at_least=0, help="seed of the split by classes")
        min_images: int = option(
            1, at_least=1, help="leave out classes with fewer images; 1 keeps every class"
        )

    def load(self) -> Dataset:
        """Return the dataset; raise DataError with all problems of the layout, then of the rest."""
        findings = Findings("folder", Path(self.config.root))
        if not findings.root.is_dir():
            findings.fail("it is no directory; give the parent of the class folders as root")
        table = (self._read_csv if self.config.split_csv else self._read_folders)(findings)
        findings.stop()
        large = table["label"].map(table["label"].value_counts()) >= self.config.min_images
        left_out, table = table[~large], table[large].copy()
        if not self.config.split_csv:
            self._split(findings, table)
        table["protocol"] = table["role"].replace("train", "")
        check_uses(findings, table, ("train", "test"), ("path", "protocol"))
        counts = table["label"].value_counts()
        findings.add_all(
            "classes with one image",
            sorted(counts.index[counts < 2]),
            "add images, or set min_images: 2 to leave these classes out",
        )
        sizes = file_sizes(findings, table["path"].tolist())
        findings.stop()
        train, test = (
            image_sets(table[table["role"] == role], self._opener)[role]
            for role in ("train", "test")
        )
        columns = (table[column].tolist() for column in ("path", "label", "category", "role"))
        lines = "\n".join(map("\t".join, zip(*columns, strict=True)))
        dataset = Dataset("folder", train, {"test": Protocol(test)}, fingerprint_of(lines, sizes))
        if len(left_out):
            classes = left_out["label"].nunique()
            dataset.counts["left out"] = {"images": len(left_out), "classes": classes}
        return dataset

    def _opener(self, rows: pd.DataFrame) -> ReducingOpener:
        return ReducingOpener(Path(self.config.root), rows["path"].tolist())

    def _read_folders(self, findings: Findings) -> pd.DataFrame:
        """Return the images of the class folders, without roles."""
        images = class_images(findings, self.config.categories)
        category = [path.parts[0] if self.config.categories else "" for path in images]
        paths = pd.Series([path.as_posix() for path in images], dtype=object)
        return index_rows(paths, [path.parent.as_posix() for path in images], category, "", "")

    def _split(self, findings: Findings, table: pd.DataFrame) -> None:
        """Set the roles: the first classes of a random order train, the others test."""
        classes = np.array(sorted(table["label"].unique()))
        if len(classes) < 4:
            least = self.config.min_images
            condition = f" with at least {least} images" if least > 1 else ""
            findings.fail(
                f"{len(classes)} classes{condition}; at least 4 are needed, two to train and two "
                "to test"
            )
        generator = np.random.default_rng(derive(self.config.split_seed, "folder classes"))
        count = min(max(round(len(classes) * self.config.train_share), 2), len(classes) - 2)
        train = generator.permutation(classes)[:count]
        table["role"] = np.where(table["label"].isin(train), "train", "test")

    def _read_csv(self, findings: Findings) -> pd.DataFrame:
        """Return the rows of ``split_csv``."""
        file = self.config.split_csv
        needed = SPLIT_COLUMNS + ["category"] * self.config.categories
        try:
            rows = pd.read_csv(file or "", dtype=object, keep_default_na=False, index_col=False)
        except (OSError, ValueError) as error:
            findings.fail(f"cannot read split_csv {file}: {error}")
        if missing := [name for name in needed if name not in rows.columns]:
            findings.fail(f"split_csv {file} lacks the columns {', '.join(missing)}")
        if "category" not in rows.columns:
            rows["category"] = ""
        splits = sorted(set(rows["split"]) - {"train", "test"})
        findings.add_all(f"other splits in {file}", splits, "allowed: train, test")
        outside = [path for path in rows["path"] if leaves_root(path)]
        findings.add_all(
            f"paths of {file} outside the root", outside, "write them relative to it, without '..'"
        )
        unnamed = rows["path"][rows["label"].str.strip() == ""]
        findings.add_all(f"images without a label in {file}", unnamed, "fill in their classes")
        if self.config.categories:
            blank = rows["path"][rows["category"].str.strip() == ""]
            findings.add_all(
                f"images without a category in {file}", blank, "fill in, or set categories: false"
            )
        paths = pd.Series([PurePosixPath(path).as_posix() for path in rows["path"]], dtype=object)
        return index_rows(paths, rows["label"], rows["category"], rows["split"], "")
