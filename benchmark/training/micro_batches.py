"""Micro-batches: batches of any size in the memory of a few images.

Revaud et al., ICCV 2019, section 3.3, and Cakir et al., CVPR 2019, section 4.1: embed all images
without keeping what the backward pass needs, differentiate the loss with respect to the embeddings,
then embed again, one micro-batch after the other, and send each one's gradient into the network.
Costs a second forward pass.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from benchmark.core.errors import ConfigError
from benchmark.core.seeding import derive


@dataclass(frozen=True)
class MicroBatches:
    """The two passes over one batch.

    embed         images (b, C, H, W) on the CPU to embeddings (b, D) on the device
    images        the batch (B, C, H, W), of which ``size`` images at a time reach the device
    seed          seeds dropout and the like for each micro-batch, so that both passes draw the same
    """

    embed: Callable[[torch.Tensor], torch.Tensor]
    images: torch.Tensor
    size: int
    seed: int

    def embeddings(self) -> torch.Tensor:
        """Return the embeddings (B, D) of the batch, without a graph."""
        with torch.no_grad():
            return torch.cat([self._embed(part) for part in self._parts()])

    def backward(self, gradient: torch.Tensor) -> None:
        """Send the gradient (B, D) with respect to the embeddings into the network."""
        for part in self._parts():
            self._embed(part).backward(gradient[part])

    def _parts(self) -> Iterator[slice]:
        for start in range(0, len(self.images), self.size):
            yield slice(start, start + self.size)

    def _embed(self, part: slice) -> torch.Tensor:
        torch.manual_seed(derive(self.seed, "part", part.start))
        return self.embed(self.images[part])


def check_micro_batch(model: nn.Module, micro_batch: int | None, batch_size: int) -> None:
    """Raise ConfigError where batch norms would see parts in place of the batch.

    They would normalise with other statistics, so that the gradient would be that of another
    network than the recipe's.
    """
    if micro_batch is None or micro_batch >= batch_size:
        return
    count = sum(isinstance(layer, _BatchNorm) and layer.training for layer in model.modules())
    if count:
        problem = (
            f"micro_batch  {micro_batch} splits batches of {batch_size}, and {count} batch norms "
            "of this network use the statistics of what they are given; set "
            "model.freeze_batch_norm: true, or micro_batch: null"
        )
        raise ConfigError("recipe section training", [problem])
