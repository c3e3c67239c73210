"""Any directory of class folders with images: your own data as a retrieval dataset.

``root/<class>/*.jpg``, or ``root/<category>/<class>/*.jpg`` with ``categories: true``. Class
folders of one name in several places, for example below ``train`` and ``test``, need
``same_names``, because no rule knows whether they are one class. A fixed seed splits the classes.
Or a CSV with the columns path, label, split (train or test) and optionally category splits the
images; its paths are relative to the root and stay inside it. The fingerprint covers paths, sizes
in bytes, classes, categories and the split, not the pixels.

Without a CSV, every file below the root that is not an image of a class is reported. Classes with
fewer than ``min_images`` images are left out, and counted. A class with a single image, which has
nothing to retrieve, is an error.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import numpy as np
import pandas as pd

from benchmark.core.files import check_regular
from benchmark.core.options import option, options
from benchmark.core.paths import is_text, leaves_root
from benchmark.core.seeding import derive
from benchmark.datasets import DATASETS
from benchmark.datasets.base import (
    Dataset,
    DatasetLoader,
    Findings,
    ImageSet,
    Protocol,
    fingerprint_of,
)
from benchmark.datasets.index import check_uses, image_sets, index_rows, one_form
from benchmark.datasets.io.images import IMAGE_SUFFIXES, ReducingOpener, is_ignored

SPLITS = frozenset({"train", "training", "val", "valid", "validation", "dev", "test", "testing"})


@DATASETS.register("folder", display="Folder")
class Folder(DatasetLoader):
    """Class folders below ``root``."""

    @options
    class Config:
        """Where the images are and how they are split."""

        root: str = option(help="directory of the class folders")
        categories: bool = option(False, help="whether a category level lies above the classes")
        same_names: Literal["join", "apart"] | None = option(
            None,
            help="class folders of one name in several places: join makes one class of them, "
            "apart one of each; null refuses them unless they lie in categories",
        )
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
            message = "it is not a directory; give the parent of the class folders as root"
            findings.fail("no_root", message)
        read = self._read_csv if self.config.split_csv else self._read_folders
        table = read(findings)
        findings.stop()
        is_split = self.config.split_csv is not None
        table, left_out = divided(findings, table, self.config, is_split, ("train", "test"))
        sizes = np.array([_size(findings.root / path) for path in table["path"]])
        unusable = [f"{path} (empty)" for path in table["path"][sizes == 0]]
        unusable += _missing(findings, table["path"][sizes < 0].tolist())
        what = f"images that cannot be used (of {len(table):,})"
        findings.add_all("missing_image", what, unusable, "replace them")
        findings.stop()
        # the classes of each set are numbered from 0
        sets: dict[str, ImageSet] = {}
        for role in ("train", "test"):
            sets |= image_sets(
                table[table["role"] == role],
                lambda rows: ReducingOpener(findings.root, rows["path"].tolist()),
            )
        columns = (table[column].tolist() for column in ("path", "label", "category", "role"))
        lines = "\n".join(map("\t".join, zip(*columns, strict=True)))
        fingerprint = fingerprint_of(lines, sizes)
        protocols = {"test": Protocol(sets["test"])}
        dataset = Dataset("folder", sets["train"], protocols, fingerprint)
        if len(left_out):
            classes = left_out["label"].nunique()
            dataset.counts["left out"] = {"images": len(left_out), "classes": classes}
        return dataset

    def _read_folders(self, findings: Findings) -> pd.DataFrame:
        """Return the images below the root, sorted, without roles.

        Their paths are class/image, or category/class/image. Everything else goes into the
        findings: images at another depth, files with other suffixes, folders without files, names
        that are not text. Links to folders are followed.
        """
        categories = self.config.categories
        shape = "category/class/image" if categories else "class/image"
        images = []
        others = []
        empty = []
        unreadable = []
        for path, is_file in _entries(findings):
            if not is_text(path.as_posix()):
                unreadable.append(path.as_posix())
            elif not is_file:
                empty.append(path.as_posix())
            elif path.suffix.lower() in IMAGE_SUFFIXES:
                images.append(path)
            else:
                others.append(path.as_posix())
        images.sort()
        suffixes = ", ".join(sorted(IMAGE_SUFFIXES))
        if not (images or others or empty or unreadable or findings.problems):
            findings.add(
                "no_images",
                f"no images; expected {shape} with suffixes {suffixes}: one folder for each class, "
                "with its images in it",
            )
        depths = {len(path.parts) for path in images}
        depth = shape.count("/") + 1
        namesakes = namesakes_of(path.parent for path in images)
        same = self.config.same_names
        asked = self._check_names(findings, namesakes, depths)
        if asked or (same and not categories):  # whatever lies above the class folders
            depth = max(depths, default=depth)
        advice = "bring all to one depth" if same else f"move each to {shape}"
        if depths == {1}:
            advice = (
                f"give each class a folder of its own and {advice}, or name each image's class in "
                "a split_csv"
            )
        elif depths == {2} or depths == {3}:
            other = "false" if categories else "true"
            advice += f", or set categories: {other}"
        wrong = [path.as_posix() for path in images if len(path.parts) != depth]
        findings.add_all("other_depth", "images at another depth", wrong, advice)
        advice = (
            f"expected {shape}: convert images to one of {suffixes}, move other files out of the "
            "root"
        )
        findings.add_all("other_file", "files with other suffixes", others, advice)
        advice = "add their images, or remove them"
        findings.add_all("empty_folder", "empty folders", empty, advice)
        what = "names that are not UTF-8 text"
        findings.add_all("malformed_name", what, unreadable, "rename them")
        category = [path.parts[0] for path in images] if categories else ""
        labels = [path.parent.as_posix() for path in images]
        if same == "join":
            labels = [path.parent.name for path in images]
        return index_rows([path.as_posix() for path in images], labels, category, "test")

    def _check_names(
        self, findings: Findings, namesakes: dict[str, list[Path]], depths: set[int]
    ) -> bool:
        """Report names that may be one class or several; return whether the user must decide.

        Equal names in several categories are several classes, but a split is not a category. Names
        side by side that differ in letter case, like 'a' and 'A' of handwriting, are several
        classes.
        """
        doubtful: list[str] = []
        for folders in namesakes.values():
            spellings = {one_form(folder.name) for folder in folders}
            beside = len({folder.parent for folder in folders}) < len(folders)
            if len(spellings) > 1 and not beside:
                doubtful += map(Path.as_posix, folders)
        if self.config.same_names == "join":
            advice = "write each name in one way"
            findings.add_all("letter_case", "names that differ in letter case", doubtful, advice)
        above = {folder.parent.as_posix() for folders in namesakes.values() for folder in folders}
        splits = [path for path in sorted(above) if SPLITS & {*re.split("[^a-z]+", path.lower())}]
        decided = self.config.same_names or (self.config.categories and not splits)
        if decided or not namesakes:
            return False
        what = "names of class folders in several places"
        if splits:
            what += f", which look like splits ({', '.join(splits[:5])})"
        advice = (
            "set same_names: join to make one class of each name, or set same_names: apart to make "
            "each folder a class of its own"
        )
        if not splits and depths == {3}:
            advice += ", or set categories: true to call the folders above them categories as well"
        where = [", ".join(map(Path.as_posix, folders[:5])) for folders in namesakes.values()]
        findings.add_all("same_names", what, where, advice)
        return True

    def _read_csv(self, findings: Findings) -> pd.DataFrame:
        """Return the rows of ``split_csv``."""
        file = self.config.split_csv or ""
        check_regular(file)
        needed = ["path", "label", "split"]
        if self.config.categories:
            needed.append("category")
        try:
            rows = pd.read_csv(file, dtype=object, keep_default_na=False, index_col=False)
        except (OSError, ValueError) as error:
            findings.fail("unreadable", f"cannot read split_csv {file}: {error}")
        if missing := [name for name in needed if name not in rows.columns]:
            message = f"split_csv {file} lacks the columns {', '.join(missing)}"
            findings.fail("missing_column", message)
        if "category" not in rows.columns:
            rows["category"] = ""
        splits = sorted(set(rows["split"]) - {"train", "test"})
        findings.add_all("other_split", f"other splits in {file}", splits, "allowed: train, test")
        outside = [path for path in rows["path"] if leaves_root(path)]
        advice = "write them relative to it, without '..'"
        findings.add_all("path_outside", f"paths of {file} outside the root", outside, advice)
        unnamed = rows["path"][rows["label"].str.strip() == ""]
        advice = "fill in their classes"
        findings.add_all("missing", f"images without a label in {file}", unnamed, advice)
        if self.config.categories:
            blank = rows["path"][rows["category"].str.strip() == ""]
            what = f"images without a category in {file}"
            findings.add_all("missing", what, blank, "fill in, or set categories: false")
        paths = [PurePosixPath(path).as_posix() for path in rows["path"]]
        return index_rows(paths, rows["label"], rows["category"], rows["split"], "test")


def divided(
    findings: Findings, table: pd.DataFrame, config: Any, is_split: bool, roles: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows of classes that are large enough, and the others, which are left out.

    Rows that are not split yet have the roles that they get if their class tests. Report empty
    ``roles``, classes in both splits, and classes with one image.
    """
    large = table["label"].map(table["label"].value_counts()) >= config.min_images
    left_out = table[~large]
    table = table[large].copy()
    if not is_split:
        _split(findings, table, config)
    table["protocol"] = np.where(table["role"] == "train", "", "test")
    check_uses(findings, table, roles, ("path", "protocol"))
    counts = table["label"].value_counts()
    findings.add_all(
        "one_image",
        "classes with one image",
        sorted(counts.index[counts < 2]),
        "add images, or set min_images: 2 to leave these classes out",
    )
    return table, left_out


def _split(findings: Findings, table: pd.DataFrame, config: Any) -> None:
    """Give the first classes of a random order the role train."""
    classes = np.array(sorted(table["label"].unique()))
    if len(classes) < 4:
        least = config.min_images
        condition = f" with at least {least} images" if least > 1 else ""
        findings.fail(
            "few_classes",
            f"{len(classes)} classes{condition}; at least 4 are needed, two to train and two "
            "to test",
        )
    generator = np.random.default_rng(derive(config.split_seed, "folder classes"))
    count = min(max(round(len(classes) * config.train_share), 2), len(classes) - 2)
    train = generator.permutation(classes)[:count]
    table.loc[table["label"].isin(train), "role"] = "train"


def namesakes_of(folders: Iterable[Path]) -> dict[str, list[Path]]:
    """Return the class folders whose name occurs below several folders, by this name.

    Letter case and Unicode form are ignored.
    """
    by_name = defaultdict(set)
    for folder in folders:
        by_name[one_form(folder.name).casefold()].add(folder)
    namesakes = {}
    for name, same_name in sorted(by_name.items()):
        parents = {folder.parent for folder in same_name}
        if len(parents) > 1:
            namesakes[name] = sorted(same_name)
    return namesakes


def _size(file: Path) -> int:
    """Return the bytes of a file, -1 if it does not exist."""
    return file.stat().st_size if file.is_file() else -1


def _missing(findings: Findings, paths: list[str]) -> list[str]:
    """Return each missing path, with the file of the same name in another Unicode form, if any."""
    if not paths:
        return []
    names = [entry.as_posix() for entry, _ in _entries(findings)]
    by_form = {one_form(name): name for name in names}
    missing = []
    for path in paths:
        text = f"{path} (missing)"
        if other := by_form.get(one_form(path)):
            text += f": {path!a}; the same name in another Unicode form is {other!a}"
        missing.append(text)
    return missing


def _entries(findings: Findings) -> Iterator[tuple[Path, bool]]:
    """Yield (path below the root, True) for each file, (path, False) for each empty folder."""

    def unreadable(error: OSError) -> None:
        findings.fail("unreadable", f"cannot read {error.filename}: {error.strerror}")

    root = findings.root
    above = {root: {root.resolve(), *root.resolve().parents}}  # of each folder, links followed
    for walked, folders, files in os.walk(root, onerror=unreadable, followlinks=True):
        folder = Path(walked)
        folders[:] = sorted(name for name in folders if not is_ignored(name))
        files = sorted(name for name in files if not is_ignored(name))
        if not folders and not files and folder != root:
            yield folder.relative_to(root), False
        for name in files:
            yield (folder / name).relative_to(root), True
        for name in list(folders):
            path = folder / name
            real = (folder / name).resolve()
            above[path] = above[folder] | {real}
            if real in above[folder]:
                message = f"{path} is a link to a folder that contains it; remove the link"
                findings.add("link_loop", message)
                folders.remove(name)
