"""Images per second of the suite's training loop, beside a bare loop around a timm network.

Epochs of timm's test_resnet with SmoothAP, four images a class, one thread. Network, loss and
optimiser are the same on both sides, so that 1 is the most on ready batches.
"""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Iterable, Iterator
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
from benchmark.training.evaluate import Measured
from benchmark.training.interrupt import StopRequest
from benchmark.training.loop import Trainer
from benchmark.training.numerics import prepare_numerics
from benchmark.training.progress import Progress
from benchmark.training.state import HASHED_BATCHES
from perf.reading import image_folder_batches, write_jpegs
from perf.timing import Row, compare

BACKBONE, WIDTH, RATE, LOSS = "test_resnet", 128, 4e-3, "smooth_ap"
MIN_RATIO = 0.97  # of a bare loop's images per second
BATCH, WORKERS = 64, 2


def rows(quick: bool) -> Iterator[Row]:
    """Measure an epoch on ready batches and with their reading: glyphs and, if not quick, JPEGs."""
    with tempfile.TemporaryDirectory() as folder:
        images = {"augmentation": "affine_noise", "image_size": 32, "mean": [0.5], "std": [0.5]}
        data = DatasetChoice("glyphs", "glyphs_tiny" if quick else "glyphs_1k", {})
        loops = Loops(spec(data, 128, 1, images), Path(folder) / "glyphs")
        yield from loops.compared("glyphs", 3 if quick else 4, "augmented", loops.read)
        if quick:
            return
        root = Path(folder) / "classes"
        write_jpegs(root, (500, 400), 2 * BATCH * 3)  # half of a folder's classes train
        images = {"augmentation": "crop_flip", "resize": 256, "workers": WORKERS}
        data = DatasetChoice("folder", "folder", {"root": str(root)})
        loops = Loops(spec(data, BATCH, 3, images), Path(folder) / "jpegs")
        names = loops.components.dataset.train.names
        paths = [[names[number] for number in batch] for batch in loops.batches]
        theirs = image_folder_batches(root, loops.spec.recipe.input, paths)
        read = lambda: (batch for batch, _ in theirs())  # noqa: E731
        yield from loops.compared("JPEG 500x400", 3, "from files", read)


def spec(data: DatasetChoice, batch: int, channels: int, images: dict[str, Any]) -> RunSpec:
    """Return one epoch of timm's smallest ResNet, four images a class, on one thread."""
    recipe = {
        "model": {"backbone": BACKBONE, "channels": channels, "embedding_dim": WIDTH},
        "input": images,
        "optimizer": {"name": "adamw", "lr": RATE},
        "sampler": {"name": "m_per_class", "params": {"samples_per_class": 4}},
        "training": {"epochs": 1, "threads": 1, "checkpoint_seconds": 1e9},
    }
    loss = LossChoice(LOSS, LOSS, {})
    return RunSpec(data, Setting(BACKBONE), loss, batch, 0, complete_recipe(recipe))


class Loops:
    """The two ways to train on one dataset; each call goes on training for an epoch."""

    def __init__(self, spec: RunSpec, folder: Path):
        prepare_torchvision()
        import timm

        folder.mkdir(parents=True, exist_ok=True)
        self.spec, self.folder = spec, folder
        device = prepare_numerics(spec.recipe.training)
        no_evaluation = SimpleNamespace(embed=lambda *_: {}, measure=lambda *_: Measured())
        self.components = dataclasses.replace(
            build_components(spec, device), evaluator=no_evaluation
        )
        self.batches = self.components.sampler.epoch(0)
        self.labels = [self.components.labels[torch.from_numpy(each)] for each in self.batches]
        channels = self.components.model.config.channels
        network = timm.create_model(BACKBONE, in_chans=channels, num_classes=WIDTH)
        self.network = network.to(device, memory_format=torch.channels_last).train()
        self.loss, self.device = create_loss(LOSS).to(device), device
        self.optimizer = torch.optim.AdamW(
            self.network.parameters(), lr=RATE, weight_decay=0.0, fused=True
        )

    def compared(self, name: str, repeats: int, what: str, theirs: Any) -> Iterator[Row]:
        """Give the comparison on batches in memory, and with the reading of both sides."""
        ready = list(self.read())
        bare = lambda: self.bare(ready)  # noqa: E731
        ours = lambda: self.ours(ready)  # noqa: E731
        yield compare(f"{name}, ready batches", ours, bare, repeats, MIN_RATIO)
        bare = lambda: self.bare(theirs())  # noqa: E731
        yield compare(f"{name}, {what}", self.ours, bare, repeats, MIN_RATIO)

    def read(self) -> Iterator[torch.Tensor]:
        """Yield the images of an epoch, (B, C, H, W) each, as the suite reads them."""
        return self.components.train_input.train_batches(self.batches, self.spec.seed, 0)

    def ours(self, images: list[torch.Tensor] | None = None) -> float:
        """Return images per second of the suite's loop, on batches in memory if they are given."""
        components = self.components
        if images is not None:
            ready = SimpleNamespace(train_batches=lambda *_, **__: iter(images))
            components = dataclasses.replace(components, train_input=ready)
        trainer = Trainer(components, self.folder, _Silence(self.spec.run_id, 1))
        trainer.state.batch_digests = [""] * HASHED_BATCHES  # later batches are not hashed
        trainer.run(StopRequest())
        return trainer.state.records[-1].images_per_second

    def bare(self, batches: Iterable[torch.Tensor]) -> float:
        """Return images per second of a network, an optimiser and a loss, and nothing else."""
        torch.use_deterministic_algorithms(False)
        images, started = 0, time.perf_counter()
        for batch, targets in zip(batches, self.labels, strict=True):
            embeddings = F.normalize(self.network(batch.to(self.device)))
            self.optimizer.zero_grad()
            self.loss(embeddings, targets.to(self.device)).backward()
            self.optimizer.step()
            images += len(batch)
        speed = images / (time.perf_counter() - started)
        torch.use_deterministic_algorithms(self.spec.recipe.training.deterministic)
        return speed


class _Silence(Progress):
    def say(self, text: str) -> None:
        """Print nothing."""
