"""The index table that every published dataset is read into, its checks, and the loader.

One row per image and use, with the text columns

path      file of the image, relative to the root, with "/"
label     class
category  coarser group of the class, "" without one
role      train; test (each image queries the others of its protocol); query or gallery
protocol  name of the evaluation that the row belongs to, "" for train
"""

import os
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from PIL import Image

from benchmark.core.errors import DataError
from benchmark.core.options import option, options
from benchmark.core.paths import is_text, leaves_root
from benchmark.datasets import loader_of
from benchmark.datasets.base import (
    Archive,
    Counts,
    Dataset,
    DatasetLoader,
    Findings,
    ImageSet,
    Protocol,
    count_differences,
    counts_text,
    fingerprint_of,
)
from benchmark.datasets.io.images import ReducingOpener
from benchmark.datasets.io.packed import PackedImages

COLUMNS = ("path", "label", "category", "role", "protocol")

Values = Iterable[object] | str


@options
class RootConfig:
    """Options of all published datasets."""

    root: str = option(help="directory that the dataset was unpacked into")
    allow_counts: bool = option(
        False, help="whether to go on when the numbers of images are not the published ones"
    )


@options
class IndexConfig(RootConfig):
    """Options of datasets whose images may be read from a packed copy."""

    packed: int | None = option(
        None,
        at_least=1,
        help="shorter side of the packed copy to read the images from; null reads the files",
    )


class IndexedLoader(DatasetLoader):
    """Loads a published dataset through an index table.

    A subclass names its ``lists`` and implements ``read_list``, or overrides ``read``.

    lists    "train" or the name of a protocol -> text file that lists its images
    sources  part of ``expected`` -> file that decides its counts; by default the lists
    roles    roles that must have images
    unique   columns that no two rows share
    further  columns of the table beside those of every index table
    """

    Config: ClassVar[type] = IndexConfig
    name: ClassVar[str]
    lists: ClassVar[Mapping[str, str]] = {}
    sources: ClassVar[Mapping[str, str]] = {}
    roles: ClassVar[tuple[str, ...]] = ("train", "test")
    unique: ClassVar[tuple[str, ...]] = ("path", "protocol")
    further: ClassVar[tuple[str, ...]] = ()

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the index table, list after list; what is wrong goes into the findings."""
        return pd.concat(
            self.read_list(findings, file, "train" if part == "train" else "test", part)
            for part, file in self.lists.items()
        )

    def read_list(self, findings: Findings, file: str, role: str, protocol: str) -> pd.DataFrame:
        """Return the index rows of one list."""
        raise NotImplementedError

    def table(self) -> pd.DataFrame:
        """Return the checked index table; raise DataError with everything wrong with the files.

        Counts are not compared with the published ones.
        """
        findings = Findings(self.name, Path(self.config.root))
        packed = getattr(self.config, "packed", None)
        check_root(findings, self.layout(findings.root), images=packed is None)
        table = self.read(findings)[[*COLUMNS, *self.further]]
        check_uses(findings, table, self.roles, self.unique)
        paths = list(dict.fromkeys(table["path"]))
        outside = [path for path in paths if leaves_root(path) or not is_text(path)]
        advice = "get the lists again"
        findings.add_all("path_outside", "paths that leave the root", outside, advice)
        if packed is None and not outside:
            # each folder is listed once: on a network, asking for 460,000 files takes minutes
            folders = {path.rpartition("/")[0] for path in paths}
            there = {at: findings.root / at for at in folders}
            names = {at: {*os.listdir(path)} if path.is_dir() else () for at, path in there.items()}
            parts = ((path, *path.rpartition("/")) for path in paths)
            missing = [path for path, folder, _, name in parts if name not in names[folder]]
            advice = "unpack the archive again"
            what = f"images missing (of {len(paths):,})"
            findings.add_all("missing_image", what, missing, advice)
        findings.stop()
        return table

    def layout(self, root: Path) -> tuple[Archive, ...]:
        """Return the archives of the layout that lies below ``root``: the most complete one.

        In doubt the first one.
        """

        def missing(archives: tuple[Archive, ...]) -> float:
            """Return the share of the layout's files and folders."""
            needed = sum(len(archive.provides) for archive in archives)
            return sum(len(archive.missing(root)) for archive in archives) / needed

        return min(filter(None, (self.archives, self.other_archives)), key=missing, default=())

    def load(self) -> Dataset:
        """Return the dataset; raise DataError with everything that is wrong."""
        table = self.table()
        if self.packed:
            findings = Findings(self.name, self.packed.folder)
            missing = self.packed.missing(table["path"].unique().tolist())
            findings.add_all("not_packed", "images not packed", missing, "pack them again")
            if self.largest_side and self.config.packed >= self.largest_side:
                self.packed.check_whole(findings)
            findings.stop()
        train = table["role"] == "train"
        dataset = Dataset(
            self.name,
            image_sets(table[train], self.opener)["train"],
            self.protocols(table[~train]),
            self.fingerprint(table),
            self.metrics,
        )
        dataset = replace(dataset, counts=self.counts(table, dataset))
        if not self.config.allow_counts:
            sources = {**self.lists, **self.sources}
            known = self.known_counts(dataset.counts)
            differences = count_differences(dataset.counts, known)
            advice = "get the published files, or set allow_counts: true to go on with these"
            if self.distributed:
                advice = f"known as well, all together: {counts_text(self.distributed)}; {advice}"
            findings = Findings(self.name, Path(self.config.root))
            findings.add_all(
                "other_count",
                "counts that are not the published ones",
                [f"{words}, by {sources[split]}" for split, words in differences],
                advice,
            )
            findings.stop()
        return dataset

    @cached_property
    def packed(self) -> PackedImages | None:
        """The packed copy that images are read from; None where the files are."""
        side = getattr(self.config, "packed", None)
        return None if side is None else PackedImages(Path(self.config.root), side)

    def opener(self, rows: pd.DataFrame) -> Callable[[int], Image.Image]:
        """Return the opener of the images of these rows, in their order."""
        paths = rows["path"].tolist()
        if self.packed:
            return self.packed.opener(paths)
        return ReducingOpener(Path(self.config.root), paths)

    def protocols(self, table: pd.DataFrame) -> dict[str, Protocol]:
        """Return the protocols of all rows that are not for training, by name."""
        return {
            str(name): self.protocol(str(name), image_sets(rows, self.opener))
            for name, rows in table.groupby("protocol", sort=False)
        }

    def protocol(self, name: str, sets: Mapping[str, ImageSet]) -> Protocol:
        """Return the protocol of the image sets of its roles: test, or query and gallery."""
        return Protocol(sets["test"] if "test" in sets else sets["query"], sets.get("gallery"))

    def fingerprint(self, table: pd.DataFrame) -> str:
        """Return the digest of the index table and of the bytes of packed images."""
        columns = ("\n".join(table[column]) for column in COLUMNS)
        return fingerprint_of(self.name, *columns, self.packed.digest if self.packed else "")

    def counts(self, table: pd.DataFrame, dataset: Dataset) -> dict[str, dict[str, int]]:
        """Return the counts of the dataset, to be compared with ``expected``."""
        return dataset.counts

    def beside(
        self, names: Iterable[str], parent: str | None = None, **options: Any
    ) -> dict[str, DatasetLoader]:
        """Return the loaders of further sets, in folders of ``parent`` or beside the root."""
        folder = Path(self.config.root).resolve().parent if parent is None else Path(parent)
        options["allow_counts"] = self.config.allow_counts
        return {name: loader_of(name, {"root": str(folder / name), **options}) for name in names}

    def others(self) -> dict[str, DatasetLoader]:
        """Return the loaders of the sets that the evaluation needs beside this one, by name."""
        return {}

    def expected_counts(self, found: Counts | None = None) -> Counts:
        """Return the published counts of this set and the others."""
        found = found or {}
        expected = dict(self.known_counts(found))
        for name, loader in self.others().items():
            for part, kinds in loader.known_counts(found).items():
                expected[part if part == name else f"{name} {part}"] = kinds
        return expected

    def which_counts(self, found: Counts) -> str:
        """Return which known counts this set and the others have."""
        words = [super().which_counts(found)]
        words += [loader.which_counts(found) for loader in self.others().values()]
        return "; ".join(filter(None, words))

    def load_with_others(self) -> tuple[Dataset, dict[str, Dataset]]:
        """Return this set, its fingerprint that of all, and the others; raise all their errors."""
        loaded = []
        found: list[DataError] = []
        others = self.others()
        for load in [lambda: IndexedLoader.load(self), *(one.load for one in others.values())]:
            try:
                loaded.append(load())
            except DataError as error:
                found.append(error)
        if found:
            problems = [problem for error in found for problem in error.problems]
            raise DataError("\n".join(map(str, found)), problems)
        fingerprint = fingerprint_of(*(one.fingerprint for one in loaded))
        own = replace(loaded[0], fingerprint=fingerprint, images_fingerprint=fingerprint)
        return own, dict(zip(others, loaded[1:], strict=True))


def index_rows(
    path: Iterable[object],
    label: Values,
    category: Values = "",
    role: Values = "train",
    protocol: Values = "",
) -> pd.DataFrame:
    """Return rows of an index table; each argument is one value for all rows, or one value each.

    Rows to train on are of no protocol.
    """
    # plain Python text: pandas' own text columns take seconds to walk through with 460,000 rows
    path = path if isinstance(path, pd.Series) else pd.Series(list(path), dtype=object)
    columns = dict(zip(COLUMNS, (path, label, category, role, protocol), strict=True))
    table = pd.DataFrame(columns, dtype=object)
    table.loc[table["role"] == "train", "protocol"] = ""
    return table


def check_root(findings: Findings, archives: Sequence[Archive], *, images: bool) -> None:
    """Raise DataError unless all that the archives provide is there; ``images``: folders, too."""
    root = findings.root
    needed = {
        path: archive.file
        for archive in archives
        for path in archive.provides
        if images or not path.endswith("/")
    }
    whole = Archive("", tuple(needed))
    if not (missing := whole.missing(root)):
        return
    below = sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    for folder in (*below, Path(os.path.abspath(root)).parent):
        if not whole.missing(folder):
            words = f"this is not the dataset's root, but {folder} is; give it as root"
            findings.fail("other_root", words)
    if not root.is_dir():
        advice = f"'python -m benchmark data prepare {findings.dataset}' makes it"
        findings.fail("no_root", f"no such directory; {advice}, or name another with --root")
    state = "only partly unpacked" if len(missing) < len(needed) else "not the dataset's root"
    findings.add_all(
        "missing_part",
        f"files and folders missing (of {len(needed)}, {state})",
        [f"{path} (of {needed[path]})" for path in missing],
        f"'python -m benchmark data prepare {findings.dataset} --source ARCHIVE --root {root}' "
        "unpacks them",
    )
    findings.stop()


def check_uses(
    findings: Findings, table: pd.DataFrame, roles: Sequence[str], unique: Sequence[str]
) -> None:
    """Report empty roles, images listed twice, classes in two splits or several categories.

    And names of classes and categories that look the same, and are not.
    """
    empty = sorted(set(roles) - set(table["role"]))
    what = f"roles without images (of {len(roles)})"
    findings.add_all("empty_role", what, empty, "the lists must give some for each")
    train = table["role"] == "train"
    paths = table["path"]  # a//b and ./a/b have one spelling
    spelt = [PurePosixPath(p).as_posix() if "//" in p or "./" in p else p for p in paths]
    table = table.assign(path=spelt)
    twice = set(table["path"][table.duplicated(list(unique))])
    twice |= set(table["path"][train]) & set(table["path"][~train])
    findings.add_all(
        "listed_twice", "images listed twice", sorted(twice), "each must be listed once"
    )
    shared = sorted(set(table["label"][train]) & set(table["label"][~train]))
    advice = "retrieval is tested on classes unseen in training"
    findings.add_all("both_splits", "classes in both splits", shared, advice)
    forms = defaultdict(set)
    for name in {*table["label"], *table["category"]}:
        forms[one_form(name)].add(name)
    alike = [
        f"{name}: {', '.join(map(ascii, sorted(spelt)))}"
        for name, spelt in sorted(forms.items())
        if len(spelt) > 1
    ]
    what = "names that differ in Unicode form only"
    findings.add_all("unicode_form", what, alike, "write each in one form")
    pairs = table[["label", "category"]].drop_duplicates()
    mixed = sorted(set(pairs["label"][pairs["label"].duplicated()]))
    what = "classes in several categories"
    findings.add_all("several_categories", what, mixed, "each must have one")


def one_form(name: str) -> str:
    """Return a name in the Unicode form that it shares with all that look the same."""
    return unicodedata.normalize("NFC", name)


def image_sets(
    rows: pd.DataFrame, opener: Callable[[pd.DataFrame], Callable[[int], Image.Image]]
) -> dict[str, ImageSet]:
    """Return the image set of each role; all of them share the numbers of classes and categories.

    ``opener`` makes that of some rows. Without rows, the only set is an empty one for training.
    """
    labels = pd.factorize(rows["label"], sort=True)[0].astype(np.int64)
    categories = None
    if (rows["category"] != "").any():
        categories = pd.factorize(rows["category"], sort=True)[0].astype(np.int64)
    roles = rows["role"].to_numpy()
    sets = {}
    for role in rows["role"].unique().tolist() or ["train"]:
        chosen = roles == role
        sets[role] = ImageSet(
            labels[chosen],
            rows["path"][chosen].tolist(),
            opener(rows[chosen]),
            None if categories is None else categories[chosen],
        )
    return sets
