"""One epoch of training as the suite does it, and as a plain loop around a timm network does."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F

from benchmark.core.cells import Setting
from benchmark.core.recipe import complete_recipe
from benchmark.core.records import DatasetChoice, LossChoice, RunSpec
from benchmark.losses import create_loss
from benchmark.models.vision_ops import prepare_torchvision
from benchmark.training.components import build_components
from benchmark.training.interrupt import StopRequest
from benchmark.training.loop import Trainer
from benchmark.training.measure import Measured
from benchmark.training.numerics import prepare_numerics
from benchmark.training.progress import Progress
from benchmark.training.state import HASHED_BATCHES

BACKBONE, WIDTH, RATE = "test_resnet", 128, 4e-3
LOSS = "smooth_ap"


def bench_spec(
    dataset: dict[str, Any], batch_size: int, channels: int, images: dict[str, Any]
) -> RunSpec:
    """Return one epoch of timm's smallest ResNet, four images a class, on one thread."""
    recipe = {
        "model": {"backbone": BACKBONE, "channels": channels, "embedding_dim": WIDTH},
        "input": images,
        "optimizer": {"name": "adamw", "lr": RATE},
        "sampler": {"name": "m_per_class", "params": {"samples_per_class": 4}},
        "training": {"epochs": 1, "threads": 1, "checkpoint_seconds": 1e9},
    }
    return RunSpec(
        dataset=DatasetChoice(dataset["name"], **dataset),
        setting=Setting(BACKBONE),
        loss=LossChoice(LOSS, LOSS, {}),
        batch_size=batch_size,
        seed=0,
        recipe=complete_recipe(recipe),
    )


class Training:
    """The two ways to train on one dataset; each call goes on training for an epoch."""

    def __init__(self, spec: RunSpec, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.spec, self.folder = spec, folder
        device = prepare_numerics(spec.recipe.training)
        without = SimpleNamespace(
            embed=lambda *_: {}, measure=lambda *_: Measured()
        )  # any evaluation
        components = build_components(spec, device)
        self.components = dataclasses.replace(components, evaluator=without)
        self.batches = self.components.sampler.epoch(0)
        labels = components.labels
        self.labels = [labels[torch.from_numpy(numbers)] for numbers in self.batches]
        self.bare = BareLoop(self.components.model.config.channels, device)

    def read(self) -> Iterator[torch.Tensor]:
        """Yield the images of an epoch, (B, C, H, W) each, as the suite reads them."""
        return self.components.train_input.train_batches(self.batches, self.spec.seed, 0)

    def ours(self, images: Sequence[torch.Tensor] | None = None) -> float:
        """Return images per second of the suite's loop, on batches in memory if they are given."""
        components = self.components
        if images is not None:
            ready = SimpleNamespace(train_batches=lambda *_, **__: iter(images))
            components = dataclasses.replace(components, train_input=ready)
        trainer = Trainer(components, self.folder, _Silence(self.spec.run_id, 1))
        trainer.state.batch_digests = [""] * HASHED_BATCHES  # later batches are not hashed
        trainer.run(StopRequest())
        return trainer.state.records[-1].images_per_second

    def plain(self, images: Iterable[torch.Tensor]) -> float:
        """Return images per second of the bare loop."""
        torch.use_deterministic_algorithms(False)
        try:
            return self.bare.epoch(images, self.labels)
        finally:
            torch.use_deterministic_algorithms(self.spec.recipe.training.deterministic)


class BareLoop:
    """A timm network, an optimiser and a loss; no evaluation, checkpoints, schedule or records."""

    def __init__(self, channels: int, device: torch.device):
        prepare_torchvision()
        import timm

        self.device = device
        network = timm.create_model(BACKBONE, in_chans=channels, num_classes=WIDTH)
        self.network = network.to(device, memory_format=torch.channels_last).train()
        self.loss = create_loss(LOSS).to(device)
        self.optimizer = torch.optim.AdamW(
            self.network.parameters(), lr=RATE, weight_decay=0.0, fused=True
        )

    def epoch(self, batches: Iterable[torch.Tensor], labels: Sequence[torch.Tensor]) -> float:
        """Return images per second."""
        images, started = 0, time.perf_counter()
        for batch, targets in zip(batches, labels, strict=True):
            embeddings = F.normalize(self.network(batch.to(self.device)))
            self.optimizer.zero_grad()
            self.loss(embeddings, targets.to(self.device)).backward()
            self.optimizer.step()
            images += len(batch)
        return images / (time.perf_counter() - started)


class _Silence(Progress):
    def say(self, text: str) -> None:
        """Print nothing."""
