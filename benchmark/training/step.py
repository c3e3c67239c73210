"""One optimisation step: forward, loss on the embeddings, backward, update."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from benchmark.core.recipe import TrainingConfig
from benchmark.core.seeding import derive
from benchmark.models import EmbeddingModel
from benchmark.training.memory import Memory
from benchmark.training.numerics import autocast
from benchmark.training.stages import Stages
from benchmark.training.stopwatch import Stopwatch


class DivergedError(Exception):
    """The loss or an embedding stopped being a finite number: a result, not a failure."""


@dataclass
class Stepper:
    """Takes optimisation steps; chance inside a step is seeded by the step's number alone.

    The loss is differentiated with respect to detached embeddings first and the result is passed into the
    network: the same gradient as one backward pass, and the loss's own cost can be told from the network's.
    Batches above ``config.micro_batch`` go through the network in parts.
    """

    model: EmbeddingModel
    loss: nn.Module
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    config: TrainingConfig
    device: torch.device
    seed: int
    memory: Memory | None = None
    _pending: list[torch.Tensor] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._generator = torch.Generator(device=self.device)
        self.stopwatch = Stopwatch(self.device)

    def __call__(
        self,
        images: torch.Tensor,
        labels: torch.Tensor,
        step: int,
        remembered: np.ndarray | None = None,
    ) -> None:
        """Takes step number ``step`` on images (B, C, H, W) and labels (B,), both on the CPU; ``drain`` gives its
        loss.

        ``remembered`` (B,): the numbers of the training images, when the memory takes part in the step.
        """
        torch.manual_seed(derive(self.seed, "step", step))
        self._generator.manual_seed(derive(self.seed, "loss", step))
        labels = self._placed(labels)
        self.optimizer.zero_grad(set_to_none=True)
        if self.config.micro_batch is not None and self.config.micro_batch < len(images):
            stages = Stages(
                self._embed, images, self.config.micro_batch, derive(self.seed, "step", step)
            )
            stages.second(self._loss_gradient(stages.first(), labels, remembered))
        else:
            embeddings = self._embed(images)
            embeddings.backward(self._loss_gradient(embeddings, labels, remembered))
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def drain(self) -> list[float]:
        """Returns the losses of the steps since the last call, in order, with one transfer for all."""
        if not self._pending:
            return []
        values = torch.stack(self._pending).tolist()
        self._pending.clear()
        return values

    def _embed(self, images: torch.Tensor) -> torch.Tensor:
        """Returns the embeddings (B, D) of images (B, C, H, W)."""
        images = images.to(self.device, non_blocking=True)
        with autocast(self.config, self.device):
            return self.model(images)

    def _placed(self, labels: torch.Tensor) -> torch.Tensor:
        """Returns labels where the loss takes them: on the CPU if it says so, else on the device."""
        # a plugin's loss may be any module: it gets its labels beside the embeddings
        return (
            labels
            if getattr(self.loss, "labels_on_cpu", False)
            else labels.to(self.device, non_blocking=True)
        )

    def _loss_gradient(
        self, embeddings: torch.Tensor, labels: torch.Tensor, remembered: np.ndarray | None
    ) -> torch.Tensor:
        """Returns the gradient (B, D) of the scaled loss by the embeddings; that by the loss's own parameters is
        added to them."""
        leaves = embeddings.detach().requires_grad_()
        with self.stopwatch.running():
            with autocast(self.config, self.device):
                if remembered is None:
                    value = self.loss(leaves, labels, generator=self._generator)
                else:
                    memory, memory_labels = self.memory.others(remembered)
                    memory_labels = self._placed(memory_labels)
                    value = self.loss.with_memory(
                        leaves, labels, memory, memory_labels, generator=self._generator
                    )
            self.scaler.scale(value).backward()
        if remembered is not None:
            self.memory.store(leaves, remembered)
        self._pending.append(value.detach())
        return leaves.grad
