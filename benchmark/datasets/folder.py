"""Any directory of class folders with images: your own data as a retrieval dataset.

``root/<class>/*.jpg``, or ``root/<category>/<class>/*.jpg`` with ``categories: true``. Classes are split by
a fixed seed, or images by a CSV with the columns path, label, split (train or test) and optionally category;
paths are relative to the root and stay inside it. The fingerprint covers paths, sizes in bytes, classes,
categories and the split, not the pixels. Without a CSV every file below the root must be an image of a class:
other files, images at another depth and empty folders are errors; only hidden files and the
thumbnail files of file managers are ignored (``benchmark.datasets.io.layout``). Classes with fewer than ``min_images``
images are left out, and counted; otherwise a class with a single image, which nothing could retrieve, is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from benchmark.core.errors import DataError
from benchmark.core.options import option
from benchmark.core.seeding import derive
from benchmark.datasets import DATASETS
from benchmark.datasets.base import Dataset, DatasetLoader, Protocol, fingerprint_of
from benchmark.datasets.index import image_sets
from benchmark.datasets.io.files import check_files
from benchmark.datasets.io.layout import class_images, some
from benchmark.datasets.io.lists import leaves_root

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
        """Returns the dataset; problems are reported together: of the layout, then of the split, then of files."""
        root = Path(self.config.root)
        if not root.is_dir():
            what = "is a file, not a directory" if root.exists() else "does not exist"
            raise DataError(
                f"dataset 'folder': {root} {what}; give the parent of the class folders as root"
            )
        table = (
            self._table_from_csv(root) if self.config.split_csv else self._table_from_folders(root)
        )
        kept = kept_classes(table["label"], self.config.min_images)
        left, table = table[~kept], table[kept]
        if not self.config.split_csv:
            table = self._split(table, root)
        _check_table(table, root)
        check_files(root, table["path"].tolist())
        table["role"] = table["split"]
        sets = {
            role: image_sets(root, part)[role] for role, part in table.groupby("role", sort=True)
        }
        sizes = np.array([(root / path).stat().st_size for path in table["path"]], dtype=np.int64)
        columns = (table[column].tolist() for column in ("path", "label", "category", "split"))
        lines = "\n".join(map("\t".join, zip(*columns, strict=True)))
        dataset = Dataset(
            "folder", sets["train"], {"test": Protocol(sets["test"])}, fingerprint_of(lines, sizes)
        )
        if len(left):
            dataset.counts["left out"] = {"images": len(left), "classes": left["label"].nunique()}
        return dataset

    def _table_from_folders(self, root: Path) -> pd.DataFrame:
        rows = [
            {
                "path": path.as_posix(),
                "label": path.parent.as_posix(),
                "category": path.parts[0] if self.config.categories else "",
            }
            for path in class_images(root, self.config.categories)
        ]
        return pd.DataFrame(rows)

    def _split(self, table: pd.DataFrame, root: Path) -> pd.DataFrame:
        """Returns the table with its column ``split``: the classes in a random order, the first of them to train."""
        classes = np.array(sorted(table["label"].unique()))
        if len(classes) < 4:
            least = self.config.min_images
            enough = f" with at least {least} images" if least > 1 else ""
            raise DataError(
                f"dataset 'folder': {root} has {len(classes)} classes{enough}; at least 4 are needed, two to train and "
                "two to test"
            )
        order = np.random.default_rng(derive(self.config.split_seed, "folder classes")).permutation(
            classes
        )
        count = min(max(round(len(classes) * self.config.train_share), 2), len(classes) - 2)
        return table.assign(split=np.where(table["label"].isin(order[:count]), "train", "test"))

    def _table_from_csv(self, root: Path) -> pd.DataFrame:
        path = Path(self.config.split_csv)
        try:
            table = pd.read_csv(path, dtype=str, keep_default_na=False)
        except (OSError, ValueError) as error:
            raise DataError(f"dataset 'folder': cannot read split_csv {path}: {error}") from error
        missing = [column for column in SPLIT_COLUMNS if column not in table.columns]
        if missing:
            raise DataError(
                f"{path} has no column {', '.join(missing)}; needed: {', '.join(SPLIT_COLUMNS)}"
            )
        wrong = sorted(set(table["split"]) - {"train", "test"})
        if wrong:
            raise DataError(
                f"{path} has splits {', '.join(map(repr, wrong))}; allowed: train, test"
            )
        if "category" not in table.columns:
            if self.config.categories:
                raise DataError(
                    f"{path} has no column category, and 'categories' is true; add the column, or set categories: false"
                )
            table["category"] = ""
        outside = [name for name in table["path"] if leaves_root(name)]
        if outside:
            raise DataError(
                f"{path} names files outside the dataset's root {root}: {some(outside)}; write paths relative to "
                "the root, without '..'"
            )
        table["path"] = [PurePosixPath(name).as_posix() for name in table["path"]]
        blank = table["path"][table["category"] == ""]
        if self.config.categories and len(blank):
            raise DataError(
                f"{path} gives no category for {some(blank)}; fill the column, or set categories: false"
            )
        return table


def kept_classes(labels: pd.Series, min_images: int) -> pd.Series:
    """Returns whether the class of each image has at least ``min_images`` images."""
    return labels.map(labels.value_counts()) >= min_images


def _check_table(table: pd.DataFrame, root: Path) -> None:
    """Raises DataError naming duplicates, classes in two splits or categories, lonely classes, empty splits."""
    found = []
    double = table["path"][table["path"].duplicated()].unique()
    if len(double):
        found.append(f"listed twice: {some(double)}")
    shared = table.groupby("label")["split"].nunique()
    if (shared > 1).any():
        found.append(
            f"classes in both splits: {some(shared.index[shared > 1])}; retrieval is tested on unseen classes"
        )
    mixed = table.groupby("label")["category"].nunique()
    if (mixed > 1).any():
        found.append(
            f"classes in several categories: {some(mixed.index[mixed > 1])}; a class has one"
        )
    lonely = table["label"].value_counts()
    if (lonely < 2).any():
        found.append(
            f"{(lonely < 2).sum()} classes with one image: {some(sorted(lonely.index[lonely < 2]))}; add images, or "
            "set min_images: 2 to leave these classes out"
        )
    found += [
        f"no {split} images" for split in ("train", "test") if not (table["split"] == split).any()
    ]
    if found:
        raise DataError("\n  ".join([f"dataset 'folder' at {root}:", *found]))
