"""One optimisation step: forward, loss on the embeddings, backward, update."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import nn

from benchmark.models import EmbeddingModel
from benchmark.recipe import TrainingConfig
from benchmark.seeding import derive
from benchmark.training.numerics import autocast
from benchmark.training.stopwatch import Stopwatch


class DivergedError(Exception):
    """The loss or an embedding stopped being a finite number: a result, not a failure."""


@dataclass
class Stepper:
    """Takes optimisation steps; chance inside a step is seeded by the step's number alone.

    The loss is differentiated with respect to detached embeddings first and the result is passed into the
    network: the same gradient as one backward pass, and the loss's own cost can be told from the network's.
    """

    model: EmbeddingModel
    loss: nn.Module
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    config: TrainingConfig
    device: torch.device
    seed: int
    _pending: list[torch.Tensor] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._generator = torch.Generator(device=self.device)
        self.stopwatch = Stopwatch(self.device)

    def __call__(self, images: torch.Tensor, labels: torch.Tensor, step: int) -> None:
        """Takes step number ``step`` on images (B, C, H, W) and labels (B,); ``drain`` gives its loss."""
        torch.manual_seed(derive(self.seed, "step", step))
        self._generator.manual_seed(derive(self.seed, "loss", step))
        images = images.to(self.device, non_blocking=True)
        labels = labels.to(self.device, non_blocking=True)
        self.optimizer.zero_grad(set_to_none=True)
        with autocast(self.config, self.device):
            embeddings = self.model(images)
        leaves = embeddings.detach().requires_grad_()
        with self.stopwatch.running():
            with autocast(self.config, self.device):
                value = self.loss(leaves, labels, generator=self._generator)
            self.scaler.scale(value).backward()
        embeddings.backward(leaves.grad)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self._pending.append(value.detach())

    def drain(self) -> list[float]:
        """Returns the losses of the steps since the last call, in order, with one transfer for all."""
        if not self._pending:
            return []
        values = torch.stack(self._pending).tolist()
        self._pending.clear()
        return values
