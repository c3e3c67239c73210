"""Samplers, found by their registry: which images make each batch. Nothing here imports torch.

An epoch of batches is a pure function of the data, the seed and its number.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from benchmark.core.errors import DataError, Problem
from benchmark.core.options import build, problems
from benchmark.core.registry import Registry
from benchmark.core.seeding import derive

SAMPLERS = Registry("sampler", "benchmark.input.samplers")

WHOLE = "random"  # the sampler whose one batch of all images holds each once


class Sampler(ABC):
    """Make the batches of an epoch; nothing is remembered between epochs or has to be saved.

    ``pooled``: batches are mined from embeddings of a pool of images; see ``mined_triplets``.
    """

    Config: ClassVar[type]
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
        self.config = config
        self.batch_size = batch_size
        self.seed = seed
        self.labels = np.asarray(labels)
        self.categories = None if categories is None else np.asarray(categories)
        if wrong := self.check(config, batch_size):
            raise DataError("; ".join(wrong))
        self.prepare()
        if len(self.labels) and not self.epoch(0):  # without images nothing is trained
            raise DataError(
                f"one epoch would have no batch: {len(self.labels)} training images of "
                f"{len(np.unique(self.labels))} classes do not fill a batch of {batch_size} with "
                f"{config}; choose a smaller batch size or fewer samples per class"
            )

    @classmethod
    def check(cls, config: Any, batch_size: int) -> list[str]:
        """Return the problems of the batch size under this configuration."""
        return []

    @classmethod
    def images_of_epoch(cls, config: Any, batch_size: int, images: int, categories: int) -> int:
        """Return about how many images the batches of an epoch have, given what a dataset has."""
        return images

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


def create_sampler(
    name: str,
    params: Mapping[str, Any],
    *,
    labels: np.ndarray,
    categories: np.ndarray | None,
    batch_size: int,
    seed: int,
) -> Sampler:
    """Return the sampler registered as ``name`` of images with labels and categories (N,).

    A batch of all images leaves it no choice: then each epoch is one batch, in random order.
    """
    target = SAMPLERS[name].target
    config = build(target.Config, dict(params), f"sampler '{name}'")
    if batch_size == len(labels) and not target.pooled:
        target = SAMPLERS[WHOLE].target
    return target(config, labels=labels, categories=categories, batch_size=batch_size, seed=seed)


def check(name: str, params: Mapping[str, Any], batch_size: int) -> list[Problem]:
    """Return the problems of a sampler's parameters and batch size, without data."""
    target = SAMPLERS[name].target
    wrong = problems(target.Config, dict(params), f"sampler '{name}'")
    if wrong:
        return wrong
    return [Problem(message) for message in target.check(target.Config(**params), batch_size)]


def shuffled(batches: Sequence[np.ndarray], generator: np.random.Generator) -> list[np.ndarray]:
    """Return the batches in random order, each with its images in random order."""
    order = generator.permutation(len(batches)).tolist()
    return [generator.permutation(batches[number]) for number in order]


def unshared(batch_size: int, samples_per_class: int, categories: int = 1) -> list[str]:
    """Return the problem of a batch of one class, or of unequal shares of its categories.

    A share has groups of ``samples_per_class`` images; 0: a share has any size.
    """
    step = categories * max(samples_per_class, 1)
    if batch_size % step:
        divisor = f"{categories} categories" if categories > 1 else "classes"
        if samples_per_class:
            divisor += f" of samples_per_class {samples_per_class}"
        lower = batch_size // step * step
        nearest = " or ".join(str(size) for size in (lower, lower + step) if size)
        return [f"batch size {batch_size} is not divisible by {divisor}; choose {nearest}"]
    if batch_size < 2 * samples_per_class:
        return [
            f"batch size {batch_size} is one class of {samples_per_class}; at least two are needed"
        ]
    return []
