"""The sampler's interface: an epoch of batches is a pure function of the data, seed and number."""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.options import option
from benchmark.core.seeding import derive

MOST_PASSES = 100  # an epoch of more passes over the images is a mistake


class Sampler(ABC):
    """Make the batches of an epoch; nothing is remembered between epochs or has to be saved."""

    Config: ClassVar[type]
    # Whether batches are mined from embeddings of a pool of images: see ``mined_triplets``.
    pooled: ClassVar[bool] = False

    def __init__(
        self,
        config: Any,
        *,
        labels: np.ndarray,
        categories: np.ndarray | None,
        batch_size: int,
        seed: int,
    ):
        self.config, self.batch_size, self.seed = config, batch_size, seed
        self.labels = np.asarray(labels)
        self.categories = None if categories is None else np.asarray(categories)
        problems = self.check(config, batch_size)
        if problems:
            raise DataError("; ".join(problems))
        self.prepare()
        if len(self.labels) and not self.epoch(0):  # without images nothing is trained
            raise DataError(
                f"one epoch would have no batch: {len(self.labels)} training images of "
                f"{len(np.unique(self.labels))} classes do not fill a batch of {batch_size} with "
                f"{config}; choose a smaller batch size or fewer samples per class"
            )

    @classmethod
    def check(cls, config: Any, batch_size: int) -> list[str]:
        """Return what is wrong with the batch size under this configuration."""
        return []

    def prepare(self) -> None:  # noqa: B027 - optional
        """Check and index the data; raise DataError."""

    @abstractmethod
    def batches(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Return the batches of one epoch, int64 (B,) each."""

    def pool(self, number: int) -> np.ndarray:
        """Return the images (N,) that the network embeds for epoch ``number``, if ``pooled``."""
        raise NotImplementedError

    def mined(self, number: int, embeddings: np.ndarray) -> list[np.ndarray]:
        """Return the batches of epoch ``number``, given the rows (N, D) of its pool."""
        raise NotImplementedError

    def epoch(self, number: int) -> list[np.ndarray]:
        """Return the batches of epoch ``number`` (from 0)."""
        return self.batches(np.random.default_rng(derive(self.seed, "sampler", number)))


class CategorySampler(Sampler):
    """A sampler of datasets whose classes belong to categories.

    After ``prepare``, ``classes`` maps each category to the images of its classes, int64 (n,) each.
    """

    least = 2  # categories that it needs
    classes: dict[int, list[np.ndarray]]

    def prepare(self) -> None:
        """Index the classes of each category; raise DataError when there are too few categories."""
        name = type(self).__name__
        if self.categories is None:
            raise DataError(
                f"{name} needs categories, and this dataset has none; use the sampler 'm_per_class'"
            )
        order = np.lexsort((self.labels, self.categories))
        pairs = np.stack([self.categories[order], self.labels[order]])
        starts = np.flatnonzero((np.diff(pairs) != 0).any(0)) + 1
        self.classes = {}
        for images in np.split(order, starts):
            self.classes.setdefault(int(self.categories[images[0]]), []).append(images)
        if len(self.classes) < self.least:
            raise DataError(
                f"{name} needs {self.least} categories or more, and this dataset has "
                f"{len(self.classes)}; use the sampler 'm_per_class'"
            )


class GroupSampler(CategorySampler):
    """A category sampler whose batches are shared by every group of ``nb_categories`` categories.

    Groups are many where categories are: 98 make 4,753 pairs and 3.6 million fours.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config:
        """Options of the sampler."""

        batches_per_pair: int = option(
            10, at_least=1, help="batches drawn from each pair of categories in an epoch"
        )
        nb_categories: int = option(2, at_least=1, help="categories that share a batch")
        largest: int = option(
            0, at_least=0, help="draw from this many categories, those of most images; 0: from all"
        )

    @classmethod
    def check(cls, config: Any, batch_size: int) -> list[str]:
        """Return the problem of fewer categories to draw from than share a batch."""
        if not config.largest or config.largest >= config.nb_categories:
            return []
        return [
            f"largest {config.largest} leaves fewer than the {config.nb_categories} categories "
            "that share a batch; raise it, or give 0 to draw from all"
        ]

    def prepare(self) -> None:
        """Index the classes of the categories; raise DataError for too few or too many groups."""
        self.least = self.config.nb_categories
        super().prepare()
        if self.config.largest:
            sizes = {number: sum(map(len, found)) for number, found in self.classes.items()}
            taken = sorted(sizes, key=lambda number: -sizes[number])[: self.config.largest]
            self.classes = {number: self.classes[number] for number in sorted(taken)}
        count = math.comb(len(self.classes), self.least) * self.config.batches_per_pair
        if count * self.batch_size > MOST_PASSES * len(self.labels):
            raise DataError(
                f"{type(self).__name__}: an epoch would have {count:,} batches, from each group of "
                f"{self.least} out of {len(self.classes)} categories; that is more than "
                f"{MOST_PASSES} times the {len(self.labels):,} training images. Set 'largest' to "
                "draw from the categories of most images alone, or lower 'batches_per_pair'"
            )

    def groups(self) -> list[tuple[int, ...]]:
        """Return every group of categories that shares a batch."""
        return list(itertools.combinations(sorted(self.classes), self.least))


class Window:
    """Takes consecutive images of classes put in random order; after the last comes the first."""

    def __init__(self, classes: Sequence[np.ndarray], generator: np.random.Generator):
        order = generator.permutation(len(classes)).tolist()
        self._images = np.concatenate([classes[number] for number in order])
        self._start = 0

    def take(self, count: int) -> np.ndarray:
        """Return the next ``count`` images (count,); of fewer, some come again."""
        places = (self._start + np.arange(count)) % len(self._images)
        self._start = (self._start + count) % len(self._images)
        return self._images[places]


def shuffled(batches: Sequence[np.ndarray], generator: np.random.Generator) -> list[np.ndarray]:
    """Return the batches in random order, each with its images in random order."""
    order = generator.permutation(len(batches)).tolist()
    return [generator.permutation(batches[number]) for number in order]


def divisibility(samples_per_class: int, batch_size: int) -> list[str]:
    """Return the problem of a batch that cannot be made of ``samples_per_class`` each."""
    if batch_size % samples_per_class:
        lower = batch_size // samples_per_class * samples_per_class
        nearest = " or ".join(str(size) for size in (lower, lower + samples_per_class) if size)
        return [
            f"batch size {batch_size} is not divisible by samples_per_class {samples_per_class}; "
            f"choose a batch size of {nearest}"
        ]
    if batch_size // samples_per_class < 2:
        return [
            f"batch size {batch_size} is one class of {samples_per_class}; at least two are needed"
        ]
    return []


def shares(categories: int, samples_per_class: int, batch_size: int) -> list[str]:
    """Return the problem of a batch that ``categories`` cannot share equally.

    A share is made of ``samples_per_class`` images each; 0 and 1 let it have any size.
    """
    step = categories * max(samples_per_class, 1)
    if batch_size % step == 0:
        return []
    each = f" with samples_per_class {samples_per_class}" if samples_per_class > 1 else ""
    return [
        f"batch size {batch_size} cannot be shared by {categories} categories{each}; choose a "
        f"multiple of {step}"
    ]


def class_chunks(
    labels: np.ndarray, size: int, generator: np.random.Generator
) -> dict[int, list[np.ndarray]]:
    """Return {class: chunks of ``size`` shuffled image numbers}; a remainder is left out."""
    order = generator.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    unique, starts = np.unique(labels[order], return_index=True)
    ends = np.append(starts[1:], len(order))
    return {
        int(label): [order[at : at + size] for at in range(start, end - size + 1, size)]
        for label, start, end in zip(unique, starts, ends, strict=True)
        if end - start >= size
    }
