"""One optimisation step: forward, loss on the embeddings, backward, update."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmark.core.recipe import TrainingConfig
from benchmark.core.seeding import derive
from benchmark.losses.base import Loss, ScoreLoss
from benchmark.training.components import Components
from benchmark.training.memory import Memory
from benchmark.training.micro_batches import MicroBatches
from benchmark.training.numerics import autocast, grad_scaler
from benchmark.training.optimizer import create_optimizer
from benchmark.training.processes import ALONE, Processes
from benchmark.training.sound_state import belongs, same_kind
from benchmark.training.stopwatch import Stopwatch


class DivergedError(Exception):
    """The loss or an embedding stopped being a finite number: a result, not a failure."""


@dataclass
class Stepper:
    """Takes optimisation steps; random numbers in a step are seeded by the step's number alone.

    The loss is differentiated with respect to detached embeddings first, and the result is passed
    into the network: the same gradient as one backward pass, and the loss's own cost can be told
    from the network's. Batches above ``config.micro_batch`` go through the network in parts.

    Of several processes each embeds its rows of the batch. All get all embeddings and divide the
    rows of scores among them; a loss that has no such rows, or that draws random numbers, is worked
    out by the main process. Each sends its rows of the gradient into its network, and the gradients
    of the parameters are summed.
    """

    model: nn.Module
    loss: Loss
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    config: TrainingConfig
    device: torch.device
    seed: int
    memory: Memory | None = None
    processes: Processes = ALONE
    _pending: list[torch.Tensor] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._generator = torch.Generator(device=self.device)
        self.stopwatch = Stopwatch(self.device)
        self._divided = False
        if self.processes.count > 1 and isinstance(self.loss, ScoreLoss):
            self._divided = not any(part.draws for _, part in self.loss.components())
            self.loss.together = self.processes if self._divided else None

    @classmethod
    def create(cls, components: Components) -> Stepper:
        """Return the stepper of a run, with its optimiser and its memory."""
        recipe, device = components.recipe, components.device
        memory = None
        if recipe.memory.size is not None:
            width, dtype = components.model.embedding_dim, next(components.model.parameters()).dtype
            memory = Memory(recipe.memory, components.labels, width, device, dtype)
        return cls(
            components.model,
            components.loss,
            create_optimizer(recipe.optimizer, components.model, components.loss),
            grad_scaler(recipe.training, device),
            recipe.training,
            device,
            components.spec.seed,
            memory,
            components.processes,
        )

    def __call__(
        self,
        images: torch.Tensor,
        labels: torch.Tensor,
        step: int,
        remembered: np.ndarray | None = None,
        reads: bool = True,
    ) -> None:
        """Take step number ``step`` on images (B, C, H, W) and labels (B,), both on the CPU.

        Of several processes each gives its rows of the images, and all labels. ``remembered``
        (B,): the numbers of the training images, when the memory takes part in the step; ``reads``:
        whether the loss reads it, or it is only written. ``drain`` gives the loss.
        """
        seed, rank = derive(self.seed, "step", step), self.processes.rank
        if rank:
            seed = derive(seed, "process", rank)
        torch.manual_seed(seed)
        self._generator.manual_seed(derive(self.seed, "loss", step))
        labels = self._for_loss(labels)
        self.optimizer.zero_grad(set_to_none=True)
        if part := self._part_of_groups(len(images)):
            self._step_by_groups(images, labels, part)
        elif self.config.micro_batch is not None and self.passes(len(images)) > 1:
            batch = MicroBatches(self._embed, images, self.config.micro_batch, seed)
            batch.backward(self._own_gradient(batch.embeddings(), labels, remembered, reads))
        else:
            embeddings = self._embed(images)
            embeddings.backward(self._own_gradient(embeddings, labels, remembered, reads))
        self.processes.sum_gradients(self.model.parameters())
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def passes(self, images: int) -> int:
        """Return how often each of the images of a batch goes forward: twice in micro-batches."""
        size = self.config.micro_batch
        parts = size is not None and size < images and not self._part_of_groups(images)
        return 2 if parts else 1

    def _part_of_groups(self, images: int) -> int:
        """Return how many images of a batch go through the network at a time, in whole groups.

        0 where the loss knows no groups, or the batch goes through in one piece.
        """
        size, group = self.config.micro_batch, getattr(self.loss, "group", None)
        alone = self.memory is None and self.processes.count == 1
        if not group or size is None or size >= images or not alone:
            return 0
        return max(size // group, 1) * group

    def _step_by_groups(self, images: torch.Tensor, labels: torch.Tensor, size: int) -> None:
        """Add the gradient of a batch part by part; note its loss, the mean over its groups."""
        total = torch.zeros((), device=self.device)
        for start in range(0, len(images), size):
            part = slice(start, start + size)
            embeddings, share = self._embed(images[part]), len(images[part]) / len(images)
            embeddings.backward(share * self._loss_gradient(embeddings, labels[part], None, False))
            total = total + share * self._pending.pop()
        self._pending.append(total)

    def drain(self) -> list[float]:
        """Return the losses of the steps since the last call, with one transfer for all."""
        if not self._pending:
            return []
        values = torch.stack(self._pending).tolist()
        self._pending.clear()
        return values

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a resumed run needs, apart from its position."""
        state = {name: part.state_dict() for name, part in self._stateful().items()}
        return {**state, "memory": None if self.memory is None else self.memory.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave; raise ValueError for another optimiser's state."""
        settings = self._settings()
        for name, part in self._stateful().items():
            if isinstance(part, nn.Module) and not same_kind(part.state_dict(), state[name]):
                raise ValueError(f"the {name}'s tensors have other names, shapes or types")
            part.load_state_dict(state[name])
        kept = self.optimizer.state.items()
        if self._settings() != settings or not all(belongs(own, to) for to, own in kept):
            raise ValueError("the optimizer's settings or state are another one's")
        if self.memory is not None:
            self.memory.load_state_dict(state["memory"])

    def _settings(self) -> list[dict[str, Any]]:
        """Return the settings of the optimiser that stay the same; each step sets the rate."""
        groups = self.optimizer.param_groups
        return [{key: group[key] for key in group.keys() - {"params", "lr"}} for group in groups]

    def _stateful(self) -> dict[str, Any]:
        names = ("model", "loss", "optimizer", "scaler")
        return {name: getattr(self, name) for name in names}

    def _embed(self, images: torch.Tensor) -> torch.Tensor:
        images = images.to(self.device, non_blocking=True)
        with autocast(self.config, self.device):
            return self.model(images)

    def _for_loss(self, labels: torch.Tensor) -> torch.Tensor:
        """Return labels where the loss takes them: on the CPU if it says so, else on the device."""
        # a plugin's loss may be any module: it gets its labels beside the embeddings
        if getattr(self.loss, "labels_on_cpu", False):
            return labels
        return labels.to(self.device, non_blocking=True)

    def _own_gradient(
        self,
        embeddings: torch.Tensor,
        labels: torch.Tensor,
        remembered: np.ndarray | None,
        reads: bool,
    ) -> torch.Tensor:
        """Return the gradient of the loss of all processes' embeddings at those of this one."""
        whole = self.processes.joined(embeddings.detach(), len(labels))
        gradient = self._loss_gradient(whole, labels, remembered, reads)
        return gradient[self.processes.rows(len(labels))]

    def _loss_gradient(
        self,
        embeddings: torch.Tensor,
        labels: torch.Tensor,
        remembered: np.ndarray | None,
        reads: bool,
    ) -> torch.Tensor:
        """Return the gradient (B, D) of the scaled loss with respect to the embeddings.

        That with respect to the loss's own parameters is added to them.
        """
        leaves = embeddings.detach().requires_grad_()
        memory = None if remembered is None else self.memory
        images = np.empty(0, np.int64) if remembered is None else remembered
        if memory is not None and memory.write_first:
            memory.store(leaves, images)
        value, alone = leaves.new_zeros(()), self.processes.count > 1 and not self._divided
        with self.stopwatch.running():
            if self.processes.main or not alone:
                value = self._loss_value(leaves, labels, memory if reads else None, images)
                self.scaler.scale(value).backward()
            if alone:
                value = self._taken_from_main(value.detach(), leaves)
        if memory is not None and not memory.write_first:
            memory.store(leaves, images)
        self._pending.append(value.detach())
        assert leaves.grad is not None  # given by this process or by the main one
        return leaves.grad

    def _loss_value(
        self,
        leaves: torch.Tensor,
        labels: torch.Tensor,
        memory: Memory | None,
        images: np.ndarray,
    ) -> torch.Tensor:
        """Return the loss of a batch that queries itself, and a memory if there is one."""
        with autocast(self.config, self.device):
            if memory is None:
                return self.loss(leaves, labels, generator=self._generator)
            others, other_labels = memory.references(images)
            return self.loss.with_memory(
                leaves, labels, others, self._for_loss(other_labels), generator=self._generator
            )

    def _taken_from_main(self, value: torch.Tensor, leaves: torch.Tensor) -> torch.Tensor:
        """Give every process the loss and the gradients that the main one worked out."""
        own = list(self.loss.parameters())
        given = self.processes.told([parameter.grad is not None for parameter in own])
        receiving = [leaves, *(one for one, there in zip(own, given, strict=True) if there)]
        for tensor in receiving:
            if tensor.grad is None:
                tensor.grad = torch.zeros_like(tensor)
            self.processes.take_main_(tensor.grad)
        return self.processes.take_main_(value.to(leaves.dtype))
