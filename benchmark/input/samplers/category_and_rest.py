"""Batches of one category and of classes without one, as the FastAP code draws VehicleID."""

from dataclasses import dataclass

import numpy as np

from benchmark.input.samplers import SAMPLERS
from benchmark.input.samplers.base import CategorySampler, Window, shares


@SAMPLERS.register("category_and_rest", display="one category and the rest")
class CategoryAndRestSampler(CategorySampler):
    """Take half of each batch from one labelled category, half from classes without a category.

    The classes without a category are those of the last one, where VehicleID numbers its
    ``unknown``. Halves are windows over whole classes in random order, as in ``category_windows``.
    A category of N images has 2N / B batches of an epoch, rounded up, in a row; the categories
    come in their own order. Source: Cakir et al., CVPR 2019, supplement A, and their MATLAB code.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config:
        """No options."""

    @classmethod
    def check(cls, config: Config, batch_size: int) -> list[str]:
        """Return the problem of a batch size without two halves."""
        return shares(2, 0, batch_size)

    def batches(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Return the batches of one epoch."""
        half = self.batch_size // 2
        *labelled, last = sorted(self.classes)
        rest = Window(self.classes[last], generator)
        made = []
        for category in labelled:
            own = Window(self.classes[category], generator)
            for _ in range(-(-sum(map(len, self.classes[category])) // half)):
                made.append(np.concatenate([rest.take(half), own.take(half)]))
        return made
