"""Batches that categories share: classes of a category are alike, so that negatives are hard."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.options import option, options
from benchmark.input.samplers import SAMPLERS, Sampler, shuffled, unshared
from benchmark.input.samplers.classes import NoOptions

MOST_PASSES = 100  # an epoch of more passes over the images is a mistake


class CategorySampler(Sampler):
    """A sampler of datasets whose classes belong to categories.

    After ``prepare``, ``classes`` has for each category the images of its classes, int64 (n,) each.
    """

    least = 2  # categories that are needed
    classes: dict[int, list[np.ndarray]]

    def prepare(self) -> None:
        """Index the classes of each category; raise DataError when there are too few categories."""
        name = type(self).__name__
        advice = "use the sampler 'm_per_class'"
        if self.categories is None:
            raise DataError(f"{name} needs categories, and this dataset has none; {advice}")
        order = np.lexsort((self.labels, self.categories))
        pairs = np.stack([self.categories[order], self.labels[order]])
        starts = np.flatnonzero((np.diff(pairs) != 0).any(0)) + 1
        self.classes = {}
        for images in np.split(order, starts):
            self.classes.setdefault(int(self.categories[images[0]]), []).append(images)
        if len(self.classes) < self.least:
            raise DataError(
                f"{name} needs {self.least} categories or more, and this dataset has "
                f"{len(self.classes)}; {advice}"
            )


class GroupSampler(CategorySampler):
    """A category sampler with batches of every group of ``nb_categories`` categories.

    Many categories make very many groups: 98 make 4,753 pairs and 3.6 million groups of four.
    """

    @options
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
        message = (
            f"largest {config.largest} leaves fewer than the {config.nb_categories} categories "
            "that share a batch; raise it, or give 0 to draw from all"
        )
        return [message] if 0 < config.largest < config.nb_categories else []

    @classmethod
    def images_of_epoch(cls, config: Any, batch_size: int, images: int, categories: int) -> int:
        """Return how many images the batches of all groups have."""
        groups = math.comb(config.largest or categories, config.nb_categories)
        return groups * config.batches_per_pair * batch_size

    def prepare(self) -> None:
        """Index the classes of the categories; raise DataError for too few or too many groups."""
        self.least = self.config.nb_categories
        super().prepare()
        if self.config.largest:
            sizes = {number: sum(map(len, classes)) for number, classes in self.classes.items()}
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


def endless(classes: Sequence[np.ndarray], generator: np.random.Generator) -> Iterator[int]:
    """Yield the images class by class, in a random order of classes, again and again."""
    order = generator.permutation(len(classes)).tolist()
    return itertools.cycle(np.concatenate([classes[number] for number in order]).tolist())


def taken(windows: Iterable[Iterator[int]], count: int) -> np.ndarray:
    """Return the next ``count`` images of each window, window after window."""
    return np.array([image for window in windows for image in itertools.islice(window, count)])


@SAMPLERS.register("category_pairs", display="category pairs")
class CategoryPairsSampler(GroupSampler):
    """Share each batch equally between the categories of a pair; every pair has its batches.

    Classes of one category are alike, so that a batch has many hard negatives. A share takes
    classes in random order, and m images of each class. The images are drawn without replacement; a
    class of fewer than m images is drawn with replacement. A category of too few classes gives a
    shorter share. With ``samples_per_class`` 0, whole classes are taken as long as they fit. The
    batches of an epoch are shuffled, and so are the images of a batch. Idea: Cakir et al., CVPR
    2019, supplement A.
    """

    @options
    class Config(GroupSampler.Config):
        """Options of the sampler."""

        samples_per_class: int = option(
            4, at_least=0, help="images of each class in a batch; 0: all images of the class"
        )

    @classmethod
    def check(cls, config: Config, batch_size: int) -> list[str]:
        """Return the problem of a batch size that the categories cannot share equally."""
        size = config.samples_per_class
        if size == 1:
            return ["samples_per_class 1 leaves no positive in a batch; give 2 or more, or 0"]
        problems = super().check(config, batch_size)
        return problems or unshared(batch_size, size, config.nb_categories)

    def prepare(self) -> None:
        """Index the classes of each category; raise DataError for data that cannot be drawn."""
        super().prepare()
        share = self.batch_size // self.config.nb_categories
        large = [
            number for number, classes in self.classes.items() if min(map(len, classes)) > share
        ]
        if large and not self.config.samples_per_class:
            raise DataError(
                f"categories {large} have no class that fits into a share of {share} images; "
                "choose a larger batch size, or samples_per_class above 0"
            )

    def batches(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Return the batches of one epoch."""
        size = self.config.samples_per_class
        made = []
        groups = [group for group in self.groups() for _ in range(self.config.batches_per_pair)]
        for group in groups:
            picks = []
            for category in group:
                free = self.batch_size // len(group)
                classes = self.classes[category]
                for number in generator.permutation(len(classes)).tolist():
                    images = classes[number]
                    wanted = size or len(images)
                    if wanted <= free:
                        picks.append(generator.choice(images, wanted, replace=len(images) < wanted))
                        free -= wanted
                    if free < max(size, 1):
                        break
            made.append(np.concatenate(picks))
        return shuffled(made, generator)


@SAMPLERS.register("category_windows", display="category windows")
class CategoryWindowsSampler(GroupSampler):
    """Share each batch between the categories of a pair, by windows over their classes.

    In each epoch the classes of a category make a row: classes in random order, each with all its
    images. A share is the next window of that row. All classes of a window are whole, except for
    those at its ends. The pairs come in random order; the batches of one pair follow each other.
    Source: Cakir et al., CVPR 2019, section 4.2 and supplement A, and their MATLAB code.
    """

    @options
    class Config(GroupSampler.Config):
        """Options of the sampler."""

        batches_per_pair: int = option(
            5, at_least=1, help="batches drawn from each pair of categories in an epoch"
        )

    @classmethod
    def check(cls, config: Config, batch_size: int) -> list[str]:
        """Return the problem of a batch size that the categories cannot share equally."""
        problems = super().check(config, batch_size)
        return problems or unshared(batch_size, 0, config.nb_categories)

    def batches(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Return the batches of one epoch."""
        share = self.batch_size // self.config.nb_categories
        windows = {
            category: endless(classes, generator) for category, classes in self.classes.items()
        }
        groups = self.groups()
        batches = []
        for number in generator.permutation(len(groups)).tolist():
            windows_of_group = [windows[category] for category in groups[number]]
            for _ in range(self.config.batches_per_pair):
                batches.append(taken(windows_of_group, share))
        return batches


@SAMPLERS.register("category_and_rest", display="one category and the rest")
class CategoryAndRestSampler(CategorySampler):
    """Take half of each batch from one labelled category, half from classes without a category.

    The last category holds the classes without a category: VehicleID numbers its ``unknown`` last.
    Halves are windows over whole classes in random order, as in ``category_windows``. A category of
    N images has 2N / B batches in an epoch, rounded up, which follow each other. The categories
    come in the order of their numbers. Source: Cakir et al., CVPR 2019, supplement A, and their
    MATLAB code.
    """

    Config = NoOptions

    @classmethod
    def images_of_epoch(cls, config: Any, batch_size: int, images: int, categories: int) -> int:
        """Return twice the images, as if all had a category."""
        return 2 * images

    @classmethod
    def check(cls, config: NoOptions, batch_size: int) -> list[str]:
        """Return the problem of a batch size without two halves."""
        return unshared(batch_size, 0, 2)

    def batches(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Return the batches of one epoch."""
        half = self.batch_size // 2
        *labelled, last = sorted(self.classes)
        rest = endless(self.classes[last], generator)
        made = []
        for category in labelled:
            classes = endless(self.classes[category], generator)
            turns = math.ceil(sum(map(len, self.classes[category])) / half)
            made += [taken([rest, classes], half) for _ in range(turns)]
        return made
