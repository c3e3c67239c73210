"""Features of a network, without its images: files of yours as a dataset to train heads on.

The files are read as ``score`` reads them. A role ``split`` says which rows train and which test;
query and gallery divide the rows that test. Without a split, rows that are no query and not in the
gallery train. Where there are none, half of the classes train, drawn by a fixed seed.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.options import option, options
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
from benchmark.datasets.folder import divided
from benchmark.datasets.index import image_sets, index_rows
from benchmark.datasets.io.arrays import read_arrays
from benchmark.datasets.io.embeddings import SIDES, SPLIT, Roles, read_roles
from benchmark.metrics.given import chosen
from benchmark.metrics.sets import bits, first_equal

BLOCK = 4096  # rows that are looked at together
NOT_USED = "leave them out of the file"
COMMITTED = 256  # rows that features are known by where they are not
MADE_BY = "made_by"  # what 'features extract' says of itself: JSON in an array of the file


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What features are known by where they are not.

    names, labels, split   digests, in the order of the file
    shape, dtype           of the rows
    network, weights       name, and digest of the weights, where the file says them
    """

    names: str
    labels: str
    split: str
    shape: tuple[int, int]
    dtype: str
    network: str = ""
    weights: str = ""


@DATASETS.register("features", display="Features")
class Features(DatasetLoader):
    """Rows of numbers in a file of yours, with labels.

    ``load`` says in ``split`` how they were split, keeps all arrays as ``given``, by their names in
    the file, and what they are known by.
    """

    split = ""
    given: dict[str, Any]
    identity: Identity

    @options
    class Config:
        """Where the features are and how they are split."""

        file: str = option(help="features: .npz, .npy, .safetensors or .pt")
        labels: str | None = option(
            None, help="their labels, and more: .csv, .tsv, or as above; null: in the same file"
        )
        keys: dict[str, str] = option({}, help="role -> name of its array, where it has another")
        train_share: float = option(
            0.5, above=0.0, below=1.0, help="share of the classes to train on, if no split is given"
        )
        split_seed: int = option(0, at_least=0, help="seed of the split by classes")
        min_images: int = option(
            1, at_least=1, help="leave out classes with fewer rows; 1 keeps every class"
        )
        equal_rows: Literal["refuse", "keep"] = option(
            "refuse", help="rows that test and equal a row that trains"
        )

    def load(self) -> Dataset:
        """Return the dataset; raise DataError with all problems of the rows, then of the rest."""
        config = self.config
        findings = Findings("features", Path(config.file))
        labels = None if config.labels is None else Path(config.labels)
        given, _ = read_roles(
            Path(config.file), labels, config.keys, labelled=True, leave_out=False, split=True
        )
        rows = given["embeddings"]
        names = [f"row {number}" for number in range(len(rows))]
        if given["names"] is not None:
            own = map(str, given["names"].tolist())
            names = [f"{name}: {text}" for name, text in zip(names, own, strict=True)]
        check_rows(findings, rows, names)
        roles, is_split = roles_of(findings, given)
        findings.stop()
        values = given["labels"].tolist()
        groups: Any = ""
        if given["categories"] is not None:
            groups = [*map(str, given["categories"].tolist())]
        table = index_rows(names, [*map(str, values)], groups, roles)
        tested = [side for side in SIDES if side in roles] or ["test"]
        table, left_out = divided(findings, table, config, is_split, ["train", *tested])
        findings.stop()
        numbers = {
            role: table.index[table["role"] == role].to_numpy() for role in ("train", *tested)
        }
        twice = equal_rows(rows, numbers["train"], np.concatenate([*numbers.values()][1:]), names)
        if config.equal_rows == "refuse":
            what = "rows that test and equal one that trains"
            advice = f"{NOT_USED}, or set equal_rows: keep to train and test on them"
            findings.add_all("equal_rows", what, twice, advice)
        findings.stop()
        table["label"] = [values[number] for number in table.index]  # numbers in their own order
        kind = np.float16 if rows.dtype == np.float16 else np.float32
        sets: dict[str, ImageSet] = {}
        trains = table["role"] == "train"
        shares = f"{table['label'][trains].nunique():,} of {table['label'].nunique():,} classes"
        self.split = f"{shares} train, drawn by seed {config.split_seed}"
        if is_split:
            self.split = "its split is given"
        for part in (table[trains], table[~trains]):
            sets |= image_sets(part, lambda _: no_image)
        for role, images in sets.items():
            sets[role] = replace(images, features=np.asarray(rows[numbers[role]], kind))
        network, weights = maker_of(read_arrays(Path(config.file), "embeddings").get(MADE_BY))
        arrays = {role: array for role, array in given.items() if array is not None}
        self.given = {config.keys.get(role, role): array for role, array in arrays.items()}
        self.identity = Identity(
            names=digest_of(names),
            labels=digest_of(values),
            split=digest_of(table["role"]),
            shape=rows.shape,
            dtype=str(rows.dtype),
            network=network,
            weights=weights,
        )
        lines = "\n".join(map("\t".join, zip(names, map(str, values), roles, strict=True)))
        contents = [images.features for images in sets.values() if images.features is not None]
        fingerprint = fingerprint_of(lines, *contents)
        protocols = {"test": Protocol(sets[tested[0]], sets.get("gallery"))}
        dataset = Dataset("features", sets["train"], protocols, fingerprint)
        if len(left_out):
            classes = left_out["label"].nunique()
            dataset.counts["left out"] = {"images": len(left_out), "classes": classes}
        if twice:
            dataset.counts["equal to a training row"] = {"images": len(twice)}
        return dataset


def digest_of(values: Iterable[Any]) -> str:
    """Return a digest of the texts of values, in order."""
    return fingerprint_of(json.dumps([*map(str, values)]))


def maker_of(text: Any) -> tuple[str, str]:
    """Return the network, and the digest of its weights, in the array MADE_BY; "" if not there."""
    try:
        facts = json.loads(str(text))
        return str(facts["model"][0]), str(facts["weights"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return "", ""


def committed(rows: int) -> np.ndarray:
    """Return the numbers of COMMITTED of so many rows, rising: the same ones each time."""
    generator = np.random.default_rng(derive(0, "committed rows"))
    return np.sort(generator.permutation(rows)[:COMMITTED])


def no_image(number: int) -> NoReturn:
    """Raise DataError: there is no image of a row."""
    raise DataError(
        f"row {number} of a dataset 'features' has no image; galleries, views and analyses of "
        "images need a dataset of images"
    )


def check_rows(findings: Findings, rows: Any, names: list[str]) -> None:
    """Report rows with a number that float32 does not hold, and rows of one number."""
    broken: list[str] = []
    constant: list[str] = []
    for start in range(0, len(rows), BLOCK):
        with np.errstate(over="ignore"):
            block = np.asarray(rows[start : start + BLOCK], np.float32)
        is_finite = np.isfinite(block).all(1)
        is_constant = is_finite & (block.min(1) == block.max(1))
        broken += [names[start + row] for row in np.flatnonzero(~is_finite)]
        constant += [names[start + row] for row in np.flatnonzero(is_constant)]
    findings.add_all("not_finite", "rows with NaN or infinity", broken, NOT_USED)
    findings.add_all("constant", "rows whose numbers are all equal", constant, NOT_USED)


def roles_of(findings: Findings, given: Roles) -> tuple[list[str], bool]:
    """Return what each row is for (train, test, query or gallery), and whether the file says it.

    If it does not, these are the roles of the classes that test.
    """
    count = len(given["embeddings"])
    roles = np.full(count, "test", object)
    for side in SIDES:
        if given[side] is not None:
            numbers = chosen(side, given[side], count)
            both = [f"row {number}" for number in numbers if roles[number] in SIDES]
            advice = "a query would find itself; without both, each row searches all others"
            findings.add_all("both_sides", "rows that are query and gallery", both, advice)
            roles[numbers] = side
    if given[SPLIT] is not None:
        words = np.array([str(word).strip().lower() for word in given[SPLIT].tolist()], object)
        others = sorted({*words} - {"train", "test", *SIDES})
        allowed = "allowed: train, test, query, gallery"
        findings.add_all("other_split", "other splits", others, allowed)
        roles = np.where(words == "test", roles, words)
    elif len({*roles}) > 1:
        roles[roles == "test"] = "train"
    if "test" in roles and len({*roles} & {*SIDES}):
        message = "of the rows that test some are query or gallery, and some neither; give each"
        findings.add("mixed", message)
    return roles.tolist(), "train" in roles


def equal_rows(rows: Any, trained: np.ndarray, tested: np.ndarray, names: list[str]) -> list[str]:
    """Return each of the ``tested`` rows that equals one of the ``trained``, with its name."""
    ends = np.asarray(rows[:, [0, -1]], np.float32)
    every = np.concatenate([trained, tested])
    first = first_equal(rows, every, np.frombuffer(bits(ends), np.uint64))
    known = {*trained.tolist()}
    others = zip(tested, first[tested].tolist(), strict=True)
    return [f"{names[number]} = {names[other]}" for number, other in others if other in known]
