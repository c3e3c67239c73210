"""Batches of one category and of classes without one (FastAP, supplement A, for VehicleID)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.options import option
from benchmark.input.samplers import SAMPLERS
from benchmark.input.samplers.base import Sampler, divisibility


@SAMPLERS.register("category_and_rest", display="one category and the rest")
class CategoryAndRestSampler(Sampler):
    """Half of each batch comes from one category, half from classes of unknown category.

    The last category stands for the unknown one, as VehicleID numbers it; its classes also fill up
    for a category with fewer classes than half a batch holds. A category of N images gets 2N / B
    batches of an epoch, at least one.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config:
        """Options of the sampler."""

        samples_per_class: int = option(4, at_least=2, help="images of each class in a batch")

    @classmethod
    def check(cls, config: Config, batch_size: int) -> list[str]:
        """Return the problem of a batch size that the two halves cannot share equally."""
        found = divisibility(config.samples_per_class, batch_size)
        if not found and batch_size // config.samples_per_class % 2:
            found = [
                f"batch size {batch_size} has no two halves of whole classes of "
                f"{config.samples_per_class}; choose a multiple of {2 * config.samples_per_class}"
            ]
        return found

    def prepare(self) -> None:
        """Group the classes with enough images by category; raise DataError."""
        if self.categories is None or len(np.unique(self.categories)) < 2:
            raise DataError(
                "sampler 'category_and_rest' needs two categories or more, the last for classes "
                "without one; this dataset has fewer: use 'm_per_class'"
            )
        per_class = self.config.samples_per_class
        unique, first, counts = np.unique(self.labels, return_index=True, return_counts=True)
        usable = counts >= per_class
        order = np.argsort(self.labels, kind="stable")
        images = np.split(order, np.cumsum(counts)[:-1])
        self._images = {int(label): images[at] for at, label in enumerate(unique) if usable[at]}
        groups: dict[int, list[int]] = {}
        for label, at in zip(unique[usable].tolist(), first[usable].tolist(), strict=True):
            groups.setdefault(int(self.categories[at]), []).append(label)
        width = self.batch_size // per_class
        last = int(self.categories.max())
        self._rest = np.array(groups.pop(last, []))
        self._groups = {category: np.array(classes) for category, classes in groups.items()}
        if len(self._rest) < width or not self._groups:
            raise DataError(
                f"sampler 'category_and_rest' has {len(self._rest)} classes of {per_class} images "
                f"in the last category and {len(self._groups)} other categories; it needs {width} "
                "and one: choose a smaller batch size or 'm_per_class'"
            )

    def batches(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Return the batches of one epoch, in random order."""
        sizes = {
            category: sum(len(self._images[label]) for label in self._groups[category])
            for category in self._groups
        }
        categories = [
            category
            for category, size in sizes.items()
            for _ in range(max(1, 2 * size // self.batch_size))
        ]
        return [
            self._batch(self._groups[categories[number]], generator)
            for number in generator.permutation(len(categories)).tolist()
        ]

    def _batch(self, classes: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        per_class = self.config.samples_per_class
        width = self.batch_size // per_class
        own = generator.choice(classes, size=min(width // 2, len(classes)), replace=False)
        rest = generator.choice(self._rest, size=width - len(own), replace=False)
        labels = np.concatenate([own, rest]).tolist()
        return np.concatenate(
            [
                generator.choice(self._images[label], size=per_class, replace=False)
                for label in labels
            ]
        )
