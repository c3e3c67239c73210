"""Batches of images or classes drawn from the whole training set."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from benchmark.core.options import option
from benchmark.input.samplers import SAMPLERS, Sampler, divisibility, shuffled


@dataclass(frozen=True, kw_only=True)
class NoOptions:
    """No options."""


class RowSampler(Sampler):
    """Cuts a row of all images into batches; the incomplete last batch is left out."""

    Config = NoOptions

    def row(self, generator: np.random.Generator) -> np.ndarray:
        """Return all images (N,) in random order."""
        return generator.permutation(len(self.labels))

    def batches(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Return the batches of one epoch."""
        row = self.row(generator)
        count = len(row) // self.batch_size
        return list(row[: count * self.batch_size].reshape(count, self.batch_size))


@SAMPLERS.register("random", display="random images")
class RandomSampler(RowSampler):
    """Cut a permutation of all images into batches."""


@SAMPLERS.register("class_windows", display="class windows")
class ClassWindowsSampler(RowSampler):
    """Put all classes in random order, with their images shuffled, and cut the row into batches.

    All classes are whole but those at the ends of a batch. The incomplete last batch is left out;
    the MATLAB code of FastAP trains on it, too. Source: Cakir et al., CVPR 2019, supplement A.
    """

    def row(self, generator: np.random.Generator) -> np.ndarray:
        """Return all images (N,), class after class."""
        unique, numbers = np.unique(self.labels, return_inverse=True)
        rank = generator.permutation(len(unique))[numbers]
        return np.lexsort((generator.random(len(numbers)), rank))


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
        size, walk = self.config.samples_per_class, self.config.classes == "walk"
        order = generator.permutation(len(self.labels))
        order = order[np.argsort(self.labels[order], kind="stable")]
        unique, starts = np.unique(self.labels[order], return_index=True)
        chunks = {  # of each class, without a remainder
            label: list(images[: len(images) // size * size].reshape(-1, size))
            for label, images in zip(unique.tolist(), np.split(order, starts[1:]), strict=True)
            if len(images) >= size
        }
        width, left, made = self.batch_size // size, np.array(sorted(chunks)), []
        if walk:
            left = generator.permutation(left)
        while len(left) >= width:
            chosen = left[:width] if walk else generator.choice(left, size=width, replace=False)
            made.append(np.concatenate([chunks[label].pop() for label in chosen.tolist()]))
            empty = [label for label in chosen.tolist() if not chunks[label]]
            if empty:
                left = left[~np.isin(left, empty)]
        return shuffled(made, generator) if walk else made
