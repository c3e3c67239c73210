"""The interface of an input."""

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
        """Yield the augmented tensors of ``batches[start:]``.

        An image depends only on (seed, epoch, number of the batch, place in it).
        """

    @abstractmethod
    def eval_batches(self, batch_size: int, scale: float = 1.0) -> Iterator[torch.Tensor]:
        """Yield batches of all images in order, without augmentation.

        ``scale``: of their sides.
        """


def normalisation(config: InputConfig, channels: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and standard deviation as (1, C, 1, 1).

    One value holds for all channels; grey takes the first of several.
    """

    def shaped(values: Sequence[float]) -> torch.Tensor:
        channel_values = list(values) * channels if len(values) == 1 else values[:channels]
        return torch.tensor(channel_values, dtype=torch.float32).view(1, channels, 1, 1)

    return shaped(config.mean), shaped(config.std)
