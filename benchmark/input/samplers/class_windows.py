"""Batches of whole classes drawn from the entire training set, as FastAP's random sampling."""

from dataclasses import dataclass

import numpy as np

from benchmark.input.samplers import SAMPLERS
from benchmark.input.samplers.base import Sampler


@SAMPLERS.register("class_windows", display="class windows")
class ClassWindowsSampler(Sampler):
    """Put all classes in random order, with their images shuffled, and cut the row into batches.

    All classes are whole but those at the ends of a batch. The incomplete last batch is left out;
    the MATLAB code of FastAP trains on it, too. Source: Cakir et al., CVPR 2019, supplement A.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config:
        """No options."""

    def batches(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Return the batches of one epoch."""
        unique, numbers = np.unique(self.labels, return_inverse=True)
        rank = generator.permutation(len(unique))[numbers]
        row = np.lexsort((generator.random(len(numbers)), rank))
        count = len(row) // self.batch_size
        return list(row[: count * self.batch_size].reshape(count, self.batch_size))
