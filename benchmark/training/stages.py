"""Multi-stage backpropagation: batches of any size in the memory of a micro-batch.

Revaud et al., ICCV 2019, section 3.3, and Cakir et al., CVPR 2019, section 4.1: embed all images without keeping
what the backward pass needs, differentiate the loss by the embeddings, then embed again, part by part, and send
each part's gradient into the network. Costs a second forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from benchmark.core.errors import ConfigError
from benchmark.core.seeding import derive


@dataclass(frozen=True)
class Stages:
    """The two passes over one batch.

    embed         images (b, C, H, W) on the CPU to embeddings (b, D) on the device
    images        the batch (B, C, H, W), of which only ``micro_batch`` images at a time reach the device
    seed          seeds dropout and the like by the place of a part, so that both passes draw the same
    """

    embed: Callable[[torch.Tensor], torch.Tensor]
    images: torch.Tensor
    micro_batch: int
    seed: int

    def first(self) -> torch.Tensor:
        """Returns the embeddings (B, D), without a graph."""
        with torch.no_grad():
            return torch.cat([self._embed_part(part) for part in self._parts()])

    def second(self, gradient: torch.Tensor) -> None:
        """Adds what ``gradient`` (B, D), by the embeddings, means to the gradients of the parameters."""
        for part in self._parts():
            self._embed_part(part).backward(gradient[part])

    def _parts(self) -> Iterator[slice]:
        for start in range(0, len(self.images), self.micro_batch):
            yield slice(start, start + self.micro_batch)

    def _embed_part(self, part: slice) -> torch.Tensor:
        torch.manual_seed(derive(self.seed, "part", part.start))
        return self.embed(self.images[part])


def check_micro_batch(model: nn.Module, micro_batch: int | None, batch_size: int) -> None:
    """Raises ConfigError when micro-batches would change the result: batch norms that look at the batch.

    Such a layer would normalise by the statistics of a micro-batch, so that the gradient would be that of another
    network than the recipe's.
    """
    if micro_batch is None or micro_batch >= batch_size:
        return
    count = sum(isinstance(layer, _BatchNorm) and layer.training for layer in model.modules())
    if count:
        raise ConfigError(
            "recipe section training",
            [
                f"micro_batch  {micro_batch} splits batches of {batch_size}, and {count} batch norms of this network "
                "use the statistics of what they are given; set model.freeze_batch_norm: true, or micro_batch: null"
            ],
        )
