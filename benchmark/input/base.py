"""The interface of an input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from benchmark.core.recipe import InputConfig


class Input(ABC):
    """Turns image numbers into float tensors (B, C, H, W) in channels-last memory, normalised."""

    @abstractmethod
    def train_batches(
        self, batches: Sequence[np.ndarray], seed: int, epoch: int, start: int = 0
    ) -> Iterator[torch.Tensor]:
        """Yields the augmented tensors of ``batches[start:]``; each depends on (seed, epoch, place) alone."""

    @abstractmethod
    def eval_batches(self, batch_size: int) -> Iterator[torch.Tensor]:
        """Yields all images in order, without augmentation."""


def normalisation(config: InputConfig, channels: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns mean and sd as (1, C, 1, 1); one value serves all channels, grey takes the first of several."""

    def shaped(values: list[float]) -> torch.Tensor:
        values = values * channels if len(values) == 1 else values[:channels]
        return torch.tensor(values, dtype=torch.float32).view(1, channels, 1, 1)

    return shaped(list(config.mean)), shaped(list(config.std))
