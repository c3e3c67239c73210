"""Batches of m images of each of several classes."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from benchmark.core.options import option
from benchmark.input.samplers import SAMPLERS
from benchmark.input.samplers.base import Sampler, class_chunks, divisibility, shuffled


@SAMPLERS.register("m_per_class", display="m per class")
class MPerClassSampler(Sampler):
    """Take the next m images of several classes until a batch cannot be filled.

    ``uniform``: the classes of each batch are drawn among all that have m images left, so that a
    class meets many others; where classes differ in size, the last batches are of the largest.
    ``walk``, the algorithm of the Smooth-AP and ROADMAP code: each batch takes the first classes of
    one random order that have m images left; the batches are shuffled, and the images of each.
    Neither uses a class of fewer than m images.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config:
        """Options of the sampler."""

        samples_per_class: int = option(
            4, at_least=2, help="images of each class in a batch", search={"among": [2, 4, 8]}
        )
        classes: Literal["uniform", "walk"] = option(
            "uniform", help="uniform: any classes; walk: the first of one order (the papers' code)"
        )

    @classmethod
    def check(cls, config: Config, batch_size: int) -> list[str]:
        """Return the problem of a batch size that is no multiple of m."""
        return divisibility(config.samples_per_class, batch_size)

    def batches(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Return the batches of one epoch."""
        chunks = class_chunks(self.labels, self.config.samples_per_class, generator)
        width = self.batch_size // self.config.samples_per_class
        walk = self.config.classes == "walk"
        left = np.array(sorted(chunks))
        if walk:
            left = generator.permutation(left)
        made = []
        while len(left) >= width:
            chosen = left[:width] if walk else generator.choice(left, size=width, replace=False)
            made.append(np.concatenate([chunks[label].pop() for label in chosen.tolist()]))
            empty = [label for label in chosen.tolist() if not chunks[label]]
            if empty:
                left = left[~np.isin(left, empty)]
        return shuffled(made, generator) if walk else made
