"""The interface of samplers: an epoch is a pure function of the data, the seed and its number."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from benchmark.core.errors import DataError
from benchmark.core.seeding import derive


class Sampler(ABC):
    """Makes the batches of an epoch; it has no state between epochs that would have to be saved."""

    Config: ClassVar[type]

    def __init__(
        self,
        config: Any,
        *,
        labels: np.ndarray,
        categories: np.ndarray | None,
        batch_size: int,
        seed: int,
    ):
        self.config, self.batch_size, self.seed = config, batch_size, seed
        self.labels = np.asarray(labels)
        self.categories = None if categories is None else np.asarray(categories)
        problems = self.check(config, batch_size)
        if problems:
            raise DataError("; ".join(problems))
        self.prepare()
        if not self.epoch(0):
            raise DataError(
                f"one epoch would have no batch: {len(self.labels)} training images of "
                f"{len(np.unique(self.labels))} classes do not fill a batch of {batch_size} with "
                f"{config}; choose a smaller batch size or fewer samples per class"
            )

    @classmethod
    def check(cls, config: Any, batch_size: int) -> list[str]:
        """Return what is wrong with the batch size under this configuration."""
        return []

    def prepare(self) -> None:  # noqa: B027 - optional
        """Check and index the data; raise DataError."""

    @abstractmethod
    def batches(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Return the batches of one epoch, int64 (B,) each."""

    def epoch(self, number: int) -> list[np.ndarray]:
        """Return the batches of epoch ``number`` (from 0)."""
        return self.batches(np.random.default_rng(derive(self.seed, "sampler", number)))


def divisibility(samples_per_class: int, batch_size: int) -> list[str]:
    """Return the problem of a batch that cannot be made of whole classes."""
    if batch_size % samples_per_class:
        lower = batch_size // samples_per_class * samples_per_class
        nearest = " or ".join(str(size) for size in (lower, lower + samples_per_class) if size)
        return [
            f"batch size {batch_size} is not divisible by samples_per_class {samples_per_class}; "
            f"choose a batch size of {nearest}"
        ]
    if batch_size // samples_per_class < 2:
        return [f"batch size {batch_size} holds one class of {samples_per_class}; two are needed"]
    return []


def class_chunks(
    labels: np.ndarray, size: int, generator: np.random.Generator
) -> dict[int, list[np.ndarray]]:
    """Return {class: chunks of ``size`` shuffled image numbers}, without the remainders."""
    order = generator.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    unique, starts = np.unique(labels[order], return_index=True)
    ends = np.append(starts[1:], len(order))
    return {
        int(label): [order[at : at + size] for at in range(start, end - size + 1, size)]
        for label, start, end in zip(unique, starts, ends, strict=True)
        if end - start >= size
    }
