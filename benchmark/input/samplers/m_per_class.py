"""Batches of m images of each of several classes, as the Smooth-AP and ROADMAP code draws them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmark.core.options import option
from benchmark.input.samplers import SAMPLERS
from benchmark.input.samplers.base import Sampler, class_chunks, divisibility


@SAMPLERS.register("m_per_class", display="m per class")
class MPerClassSampler(Sampler):
    """Uses each class until fewer than m of its images are left, at most once in a batch.

    A batch takes the next m images of random classes among those that have m left. The epoch ends
    when fewer classes are left than a batch needs.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config:
        """Options of the sampler."""

        samples_per_class: int = option(4, at_least=2, help="images of each class in a batch")

    @classmethod
    def check(cls, config: Config, batch_size: int) -> list[str]:
        """Return the problem of a batch size that is not a multiple of m."""
        return divisibility(config.samples_per_class, batch_size)

    def batches(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Return the batches of one epoch."""
        chunks = class_chunks(self.labels, self.config.samples_per_class, generator)
        width = self.batch_size // self.config.samples_per_class
        left = np.array(sorted(chunks))
        made = []
        while len(left) >= width:
            chosen = generator.choice(left, size=width, replace=False)
            made.append(np.concatenate([chunks[label].pop() for label in chosen.tolist()]))
            empty = [label for label in chosen.tolist() if not chunks[label]]
            if empty:
                left = left[~np.isin(left, empty)]
        return made
