"""Batches of images drawn at random without replacement."""

from dataclasses import dataclass

import numpy as np

from benchmark.input.samplers import SAMPLERS
from benchmark.input.samplers.base import Sampler


@SAMPLERS.register("random", display="random images")
class RandomSampler(Sampler):
    """Cut a permutation of all images into batches; the incomplete last batch is left out."""

    @dataclass(frozen=True, kw_only=True)
    class Config:
        """No options."""

    def batches(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Return the batches of one epoch."""
        order = generator.permutation(len(self.labels))
        count = len(order) // self.batch_size
        return list(order[: count * self.batch_size].reshape(count, self.batch_size))
