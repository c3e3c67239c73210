"""The index table of a published dataset, its checks, and its loader.

The table has one row for each use of an image, with the text columns

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
    Dataset,
    DatasetLoader,
    Findings,
    ImageSet,
    Protocol,
    count_differences,
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
    source   file that decides those counts of ``expected`` that no list decides
    roles    roles that must have images
    unique   columns that no two rows share
    further  columns of the table beside the columns of every index table
    """

    Config: ClassVar[type] = IndexConfig
    name: ClassVar[str]
    lists: ClassVar[Mapping[str, str]] = {}
    source: ClassVar[str] = ""
    roles: ClassVar[tuple[str, ...]] = ("train", "test")
    unique: ClassVar[tuple[str, ...]] = ("path", "protocol")
    further: ClassVar[tuple[str, ...]] = ()

    def read(self, findings: Findings) -> pd.DataFrame:
        """Return the index table, list after list; problems go into the findings."""
        tables = []
        for split, file in self.lists.items():
            role = "train" if split == "train" else "test"
            tables.append(self.read_list(findings, file, role, split))
        return pd.concat(tables)

    def read_list(self, findings: Findings, file: str, role: str, protocol: str) -> pd.DataFrame:
        """Return the index rows of one list."""
        raise NotImplementedError

    def table(self) -> pd.DataFrame:
        """Return the checked index table; raise DataError with all problems of the files.

        Counts are not compared with the published counts.
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
            missing = missing_files(findings.root, paths)
            what = f"images missing (of {len(paths):,})"
            findings.add_all("missing_image", what, missing, "unpack the archive again")
        findings.stop()
        return table

    def layout(self, root: Path) -> tuple[Archive, ...]:
        """Return the archives of the layout below ``root``: of two layouts the more complete one.

        If both are equally complete, return the first.
        """

        def missing_share(archives: tuple[Archive, ...]) -> float:
            needed = sum(len(archive.provides) for archive in archives)
            return sum(len(archive.missing(root)) for archive in archives) / needed

        layouts = filter(None, (self.archives, self.other_archives))
        return min(layouts, key=missing_share, default=())

    def load(self) -> Dataset:
        """Return the dataset; raise DataError with all problems."""
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
        if self.category_names:
            found = set(table["category"])
            missing = [f"{name} is missing" for name in sorted(self.category_names - found)]
            more = [f"{name} is not one of them" for name in sorted(found - self.category_names)]
            self.other_names = (*missing, *more)
        if not self.config.allow_counts:
            known = self.known_counts(dataset.counts)
            differences = count_differences(dataset.counts, known)
            advice = "get the published files, or set allow_counts: true to go on with these"
            names = self.other_names
            offenders = []
            for split, difference in differences:
                offenders.append(f"{difference}, by {self.lists.get(split, self.source)}")
            findings = Findings(self.name, Path(self.config.root))
            what = "counts that are not the published ones"
            known_as_well = f"{self.also_known}; " if self.also_known else ""
            findings.add_all("other_count", what, offenders, f"{known_as_well}{advice}")
            findings.add_all("other_name", "names that are not the published ones", names, advice)
            findings.stop()
        return dataset

    @cached_property
    def packed(self) -> PackedImages | None:
        """The packed copy that images are read from; None if the files are read."""
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
        queries = sets["test"] if "test" in sets else sets["query"]
        return Protocol(queries, sets.get("gallery"))

    def fingerprint(self, table: pd.DataFrame) -> str:
        """Return the digest of the index table and of the bytes of packed images."""
        columns = ("\n".join(table[column]) for column in COLUMNS)
        packed = self.packed.digest if self.packed else ""
        return fingerprint_of(self.name, *columns, packed)

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

    def load_with_others(self) -> tuple[Dataset, dict[str, Dataset]]:
        """Return this set and the others by name; raise one DataError with the errors of all sets.

        The fingerprint of this set covers the others.
        """
        errors: list[DataError] = []
        others = self.others()
        loads = [lambda: IndexedLoader.load(self)]
        loads += [loader.load for loader in others.values()]
        sets = []
        for load in loads:
            try:
                sets.append(load())
            except DataError as error:
                errors.append(error)
        if errors:
            problems = [problem for error in errors for problem in error.problems]
            raise DataError("\n".join(map(str, errors)), problems)
        fingerprint = fingerprint_of(*(dataset.fingerprint for dataset in sets))
        this = replace(sets[0], fingerprint=fingerprint, images_fingerprint=fingerprint)
        return this, dict(zip(others, sets[1:], strict=True))


def missing_files(root: Path, paths: Sequence[str]) -> list[str]:
    """Return the paths below ``root`` that do not exist.

    Each folder is listed once: on a network, to ask for each of 460,000 files takes minutes.
    """
    names: dict[str, set[str]] = {}
    missing = []
    for path in paths:
        folder, _, name = path.rpartition("/")
        if folder not in names:
            names[folder] = set()
            if (root / folder).is_dir():
                names[folder].update(os.listdir(root / folder))
        if name not in names[folder]:
            missing.append(path)
    return missing


def index_rows(
    path: Iterable[object],
    label: Values,
    category: Values = "",
    role: Values = "train",
    protocol: Values = "",
) -> pd.DataFrame:
    """Return rows of an index table; each argument is one value for all rows, or a value per row.

    Training rows have no protocol.
    """
    # plain Python text: a loop over pandas' text columns takes seconds for 460,000 rows
    if not isinstance(path, pd.Series):
        path = pd.Series(list(path), dtype=object)
    columns = dict(zip(COLUMNS, (path, label, category, role, protocol), strict=True))
    table = pd.DataFrame(columns, dtype=object)
    table.loc[table["role"] == "train", "protocol"] = ""
    return table


def check_root(findings: Findings, archives: Sequence[Archive], *, images: bool) -> None:
    """Raise DataError unless all files of the archives exist, and with ``images`` the folders."""
    root = findings.root
    needed = {}
    for archive in archives:
        for path in archive.provides:
            if images or not path.endswith("/"):
                needed[path] = archive.file
    layout = Archive("", tuple(needed))
    missing = layout.missing(root)
    if not missing:
        return
    folders = []
    if root.is_dir():
        folders = sorted(path for path in root.iterdir() if path.is_dir())
    for folder in (*folders, Path(os.path.abspath(root)).parent):
        if not layout.missing(folder):
            message = f"this is not the dataset's root, but {folder} is; give it as root"
            findings.fail("other_root", message)
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
    """Report empty roles, images that are listed twice, and classes in both splits.

    Report also classes in several categories, and names that differ only in Unicode form.
    """
    empty = sorted(set(roles) - set(table["role"]))
    what = f"roles without images (of {len(roles)})"
    findings.add_all("empty_role", what, empty, "the lists must give some for each")
    train = table["role"] == "train"
    spellings = []
    for path in table["path"]:
        if "//" in path or "./" in path:  # a//b and ./a/b are one path
            path = PurePosixPath(path).as_posix()
        spellings.append(path)
    table = table.assign(path=spellings)
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
        f"{name}: {', '.join(map(ascii, sorted(names)))}"
        for name, names in sorted(forms.items())
        if len(names) > 1
    ]
    what = "names that differ in Unicode form only"
    findings.add_all("unicode_form", what, alike, "write each in one form")
    pairs = table[["label", "category"]].drop_duplicates()
    mixed = sorted(set(pairs["label"][pairs["label"].duplicated()]))
    what = "classes in several categories"
    findings.add_all("several_categories", what, mixed, "each must have one")


def one_form(name: str) -> str:
    """Return a name in the one Unicode form of all names that look the same."""
    return unicodedata.normalize("NFC", name)


def image_sets(
    rows: pd.DataFrame, opener: Callable[[pd.DataFrame], Callable[[int], Image.Image]]
) -> dict[str, ImageSet]:
    """Return the image set of each role; the sets share the numbers of classes and categories.

    ``opener`` makes the opener of rows. Without rows, the only set is an empty training set.
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
        of_images = None if categories is None else categories[chosen]
        sets[role] = ImageSet(labels[chosen], paths, opener(rows[chosen]), of_images)
    return sets
