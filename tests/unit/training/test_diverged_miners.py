"""A run whose embeddings are no longer finite is diverged, whatever a miner or library raises.

Each run blows up by its learning rate and weight decay; the sentence names the step.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from benchmark.core.recipe import MemoryConfig, TrainingConfig
from benchmark.core.records import LossChoice
from benchmark.losses.base import Loss
from benchmark.training.run import train
from benchmark.training.step import DivergedError, Memory, Stepper
from tests.helpers.tiny_runs import tiny_spec, write_spec_in

BLOWS_UP = {
    "optimizer": {"lr": 1e25, "weight_decay": 1e4},
    "schedule": {"name": "constant"},
}
PARTS = {
    "distance_weighted": {"class": "MarginLoss", "miner": {"class": "DistanceWeightedMiner"}},
    "uniform_histogram": {"class": "ContrastiveLoss", "miner": {"class": "UniformHistogramMiner"}},
    "dynamic_soft_margin": {"class": "DynamicSoftMarginLoss"},
}
CPU = torch.device("cpu")
LABELS = torch.arange(12) // 3


def outcome(folder, spec):
    result = train(write_spec_in(folder, spec))
    assert result.metrics.last == {}
    return result.status, result.reason


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"memory": {"size": -1}},
        {"training": {"precision": "bfloat16"}},
        {"training": {"micro_batch": 12}, "model": {"freeze_batch_norm": True}},
        {"training": {"micro_batch": 16, "staged": True}},
    ],
    ids=["plain", "memory", "bfloat16", "micro-batches", "stages"],
)
def test_a_run_with_the_margin_loss_diverges_like_one_with_smooth_ap(tmp_path, sections):
    margin = outcome(tmp_path / "margin", tiny_spec("margin", **BLOWS_UP, **sections))
    smooth = outcome(tmp_path / "smooth", tiny_spec("smooth_ap", **BLOWS_UP, **sections))
    assert margin[0] == smooth[0] == "diverged"
    step = smooth[1].removeprefix("loss became nan at ")
    assert margin[1] == f"embeddings became non-finite at {step}"


@pytest.mark.parametrize("name", PARTS)
def test_any_part_of_the_library_that_cannot_take_such_embeddings_diverges(tmp_path, name):
    spec = replace(tiny_spec(**BLOWS_UP), loss=LossChoice(name, "pml", PARTS[name]))
    status, reason = outcome(tmp_path, spec)
    assert status == "diverged"
    assert reason.endswith(" at epoch 1, step 2 of it")


class Failing(Loss):
    """Raises as soon as it is asked."""

    def forward(self, *batch, **options):
        raise ValueError("no such miner")


class Filled(nn.Linear):
    """Embeddings (B, 4) that hold one value, from images (B, 1, 2, 2)."""

    def __init__(self, value):
        super().__init__(4, 4)
        self.value = value

    def forward(self, images):
        return super().forward(images.flatten(1)) * 0 + self.value


def step_with(value, memory=None):
    model = Filled(value)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(enabled=False)
    loss = Failing(Failing.Config())
    stepper = Stepper(model, loss, optimizer, scaler, TrainingConfig(), CPU, 0, memory)
    numbers = None if memory is None else np.arange(12)
    stepper(torch.zeros(12, 1, 2, 2), LABELS, 0, numbers)


@pytest.mark.parametrize("remember", [False, True])
def test_an_error_beside_finite_embeddings_stays_that_error(remember):
    memory = Memory(MemoryConfig(size=-1), LABELS, 4, CPU) if remember else None
    with pytest.raises(ValueError, match="no such miner"):
        step_with(0.5, memory)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_an_error_beside_embeddings_that_are_not_finite_is_a_divergence(value):
    with pytest.raises(DivergedError, match="embeddings became non-finite"):
        step_with(value)
