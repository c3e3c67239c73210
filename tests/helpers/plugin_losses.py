"""Losses of a plugin folder, written, imported and used for one step of training."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn

from benchmark.core.recipe import TrainingConfig
from benchmark.core.registry import import_plugin
from benchmark.losses import LOSSES, create_loss
from benchmark.training.step import Stepper

HEAD = """
import torch
from dataclasses import dataclass
from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.base import Loss, RankingLoss, ScoreLoss, SoftRankLoss
from benchmark.losses.composite import Composite

@LOSSES.register("mine")
"""
FORWARD = """class Mine(Loss):
    def forward(self, embeddings, labels, *references, generator=None):
        {}
"""


class Unit(nn.Linear):
    """Embeddings (B, 4) of images (B, 1, 2, 3)."""

    def forward(self, images):
        return nn.functional.normalize(super().forward(images.flatten(1)))


@contextmanager
def plugins(folder: Path) -> Iterator[Callable[[str], Path]]:
    """Gives a function that writes and imports the loss ``mine``; forgets it in the end."""
    LOSSES.names()  # all others are there
    entries = dict(LOSSES._entries)
    path = folder / "plugin_of_a_test.py"

    def write(text: str) -> Path:
        path.write_text(HEAD + text)
        import_plugin(path)
        return path

    yield write
    LOSSES._entries = entries
    sys.modules.pop("benchmark_plugin_plugin_of_a_test", None)


def take_steps(count: int = 2) -> list[float]:
    """Returns the values of the loss ``mine`` in a few steps on 12 images of 4 classes."""
    torch.manual_seed(0)
    model, loss = Unit(6, 4), create_loss("mine", embedding_dim=4, num_classes=4)
    optimizer = torch.optim.SGD([*model.parameters(), *loss.parameters()], lr=0.1)
    scaler = torch.amp.GradScaler(enabled=False)
    stepper = Stepper(model, loss, optimizer, scaler, TrainingConfig(), torch.device("cpu"), 0)
    for step in range(count):
        stepper(torch.randn(12, 1, 2, 3), torch.arange(12) // 3, step)
    return stepper.drain()
