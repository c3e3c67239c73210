"""A step reads nothing back from its device, so that the processor never waits for it.

The device is torch's ``meta``, whose tensors have shapes and no values: whatever needs one raises.
"""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import torch
from torch import nn

from benchmark.core.recipe import MemoryConfig, TrainingConfig
from benchmark.losses import LOSSES, create_loss
from benchmark.losses.base import Loss, ScoreLoss
from benchmark.training.step import Memory, Stepper

CPU = torch.device("cpu")
META = torch.device("meta")
SCORED = [name for name in LOSSES.names() if issubclass(LOSSES[name].target, ScoreLoss)]
SMALL = torch.arange(12) // 3
# a class so large that losses change to kernels of their own
LARGE = (torch.arange(120) > 100).long()


@pytest.fixture(autouse=True)
def no_autocast(monkeypatch):
    """Autocast knows no meta device."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: contextlib.nullcontext())


class Unit(nn.Linear):
    """Embeddings (B, 4) of images (B, 1, 2, 3)."""

    def forward(self, images):
        return nn.functional.normalize(super().forward(images.flatten(1)))


def take_steps(loss, labels, remember=False, micro_batch=None):
    """Take two steps on meta, the second with what the first left in the memory."""
    model = Unit(6, 4).to(META)
    count = len(labels)
    memory = Memory(MemoryConfig(size=-1), labels.repeat(2), 4, META) if remember else None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(enabled=False)
    config = TrainingConfig(micro_batch=micro_batch)
    stepper = Stepper(model, loss.to(META), optimizer, scaler, config, CPU, 0, memory)
    stepper.device = META  # only now: there are no generators for meta
    for step in range(2):
        stepper(
            torch.zeros(count, 1, 2, 3),
            labels,
            step,
            step * count // 2 + np.arange(count) if remember else None,
        )
    return model


@pytest.mark.parametrize("remember", [False, True], ids=["batch", "memory"])
@pytest.mark.parametrize("labels", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("name", SCORED)
def test_losses_of_scores_never_look_at_the_device(name, labels, remember):
    for micro_batch in (None, 5) if labels is SMALL else (None,):
        model = take_steps(create_loss(name), labels, remember, micro_batch)
        assert model.weight.grad.device == META


def test_labels_on_the_device_would_be_waited_for():
    loss = create_loss("smooth_ap")
    loss.labels_on_cpu = False
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        take_steps(loss, SMALL)


class Seeing(Loss):
    """A user's loss, which knows nothing of where labels lie; keeps the devices of what it is
    given."""

    def __init__(self):
        super().__init__(self.Config())
        self.devices = set()

    def forward(
        self,
        embeddings,
        labels,
        reference_embeddings=None,
        reference_labels=None,
        *,
        generator=None,
    ):
        pool = embeddings
        pool_labels = labels
        if reference_embeddings is not None:
            pool = reference_embeddings
            pool_labels = reference_labels
        self.devices |= {value.device for value in (embeddings, labels, pool, pool_labels)}
        return -((embeddings @ pool.T) * (labels.unsqueeze(1) == pool_labels)).mean()


class WithMemory(Seeing):
    """The same, with a memory of its own way."""

    def with_memory(self, embeddings, labels, memory, memory_labels, *, generator=None):
        return self(embeddings, labels, memory, memory_labels)


class Bare(nn.Module):
    """A loss that is not even a ``Loss``."""

    def __init__(self):
        super().__init__()
        self.devices = set()

    forward = Seeing.forward


@pytest.mark.parametrize("remember", [False, True], ids=["batch", "memory"])
@pytest.mark.parametrize("kind", [Seeing, WithMemory])
def test_a_users_loss_gets_all_its_labels_beside_the_embeddings(kind, remember):
    loss = kind()
    take_steps(loss, SMALL, remember)
    assert loss.devices == {META}


def test_any_module_gets_its_labels_beside_the_embeddings():
    loss = Bare()
    take_steps(loss, SMALL)
    assert loss.devices == {META}
