"""Hard batches from pairs of categories (FastAP, supplement A; Smooth-AP and ROADMAP on SOP)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.options import option
from benchmark.input.samplers import SAMPLERS
from benchmark.input.samplers.base import Sampler, divisibility


@SAMPLERS.register("category_pairs", display="category pairs")
class CategoryPairsSampler(Sampler):
    """Each batch takes half of its classes from each category of a pair, for every pair.

    Classes of one category resemble each other, so that a batch holds many hard negatives. An epoch
    visits all pairs of usable categories in random order and draws ``batches_per_pair`` batches
    from each.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config:
        """Options of the sampler."""

        samples_per_class: int = option(4, at_least=2, help="images of each class in a batch")
        batches_per_pair: int = option(
            10, at_least=1, help="batches drawn from each pair of categories"
        )

    @classmethod
    def check(cls, config: Config, batch_size: int) -> list[str]:
        """Return the problem of a batch size that two categories cannot share equally."""
        found = divisibility(config.samples_per_class, batch_size)
        if not found and batch_size // config.samples_per_class % 2:
            step = 2 * config.samples_per_class
            found = [
                f"batch size {batch_size} cannot be shared by two categories with "
                f"samples_per_class {config.samples_per_class}; choose a multiple of {step}"
            ]
        return found

    def prepare(self) -> None:
        """Group the classes with enough images by category; raise DataError."""
        if self.categories is None:
            raise DataError(
                "sampler 'category_pairs' needs categories, and this dataset has none; "
                "use 'm_per_class'"
            )
        per_class = self.config.samples_per_class
        unique, first, counts = np.unique(self.labels, return_index=True, return_counts=True)
        usable = counts >= per_class
        self._images = {
            label: np.flatnonzero(self.labels == label) for label in unique[usable].tolist()
        }
        groups: dict[int, list[int]] = {}
        for label, at in zip(unique[usable].tolist(), first[usable].tolist(), strict=True):
            groups.setdefault(int(self.categories[at]), []).append(label)
        width = self.batch_size // per_class // 2
        self._groups = {
            category: np.array(classes)
            for category, classes in groups.items()
            if len(classes) >= width
        }
        if len(self._groups) < 2:
            raise DataError(
                f"sampler 'category_pairs' has {len(self._groups)} categories with {width} or more "
                f"classes of {per_class} images; two are needed: choose a smaller batch size or "
                "'m_per_class'"
            )

    def batches(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Return the batches of one epoch."""
        pairs = list(itertools.combinations(sorted(self._groups), 2))
        return [
            np.concatenate([self._half(category, generator) for category in pairs[number]])
            for number in generator.permutation(len(pairs)).tolist()
            for _ in range(self.config.batches_per_pair)
        ]

    def _half(self, category: int, generator: np.random.Generator) -> np.ndarray:
        per_class = self.config.samples_per_class
        width = self.batch_size // per_class // 2
        classes = generator.choice(self._groups[category], size=width, replace=False)
        picks = [
            generator.choice(self._images[label], size=per_class, replace=False)
            for label in classes.tolist()
        ]
        return np.concatenate(picks)
