"""The input pipeline and the training loop, beside what users of torchvision and timm write, and
what a study costs beside training and evaluation.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from perf.timing import Row, compare, seconds_of
from PIL import Image
from torch.utils.data import DataLoader

from benchmark.core.environment import available_cores
from benchmark.core.interrupts import StopRequest
from benchmark.core.options import build
from benchmark.core.recipe import InputConfig, Recipe
from benchmark.core.records import (
    PROVENANCE,
    RESULTS,
    SPEC,
    DatasetChoice,
    LossChoice,
    RunSpec,
    Setting,
)
from benchmark.datasets.base import ImageSet
from benchmark.datasets.io.images import ReducingOpener
from benchmark.datasets.io.packed import PackedImages, pack
from benchmark.input.tensors import create_input
from benchmark.losses import create_loss
from benchmark.models.backbone import prepare_torchvision
from benchmark.training.components import build_components
from benchmark.training.fork_server import THREADS
from benchmark.training.loop import Trainer
from benchmark.training.numerics import prepare_numerics
from benchmark.training.progress import Progress
from benchmark.training.state import HASHED_BATCHES

Batches = Callable[[], Iterable[Any]]
# Of torchvision's images per second, and of a bare loop's.
MIN_RATIO_READING, MIN_RATIO_TRAINING = 2.0, 0.97
SIDE, BATCH, WORKERS = 256, 64, 2
JUDGED, LARGE = (500, 400), (1000, 800)  # width, height of the JPEGs; the first has a bound
# Size and workers: on two cores, one worker leaves a core to the training process, two do not.
CASES = ((JUDGED, 1), (JUDGED, WORKERS), (LARGE, WORKERS))
BACKBONE, WIDTH, RATE, LOSS = "test_resnet", 128, 4e-3, "smooth_ap"
GLYPHS = {"augmentation": "affine_noise", "image_size": 32, "mean": [0.5], "std": [0.5]}
JPEGS = {"augmentation": "crop_flip", "resize": SIDE}
ROOT = Path(__file__).resolve().parents[2]
RUNS = f"{RESULTS}/runs/*/*/*/*/*"
STUDY = ("snakemake", "--snakefile", ROOT / "workflow/Snakefile", "--config", "study=smoke")
LOCAL = ("--profile", ROOT / "workflow" / "profiles" / "local")


def reading(quick: bool) -> Iterator[Row]:
    """Images per second of the input pipeline, from files and from packed pixels, beside
    torchvision's ImageFolder and DataLoader: decode, resize to 256, random crop to 224, mirror,
    normalise, batches of 64.
    """
    cases, images, repeats = (CASES[1:2], 128, 2) if quick else (CASES, 256, 5)
    batches = list(np.arange(images).reshape(-1, BATCH))
    for size, workers in cases:
        with tempfile.TemporaryDirectory() as folder:
            root, config = Path(folder), InputConfig(**JPEGS, workers=workers)
            paths = [f"images/{path}" for path in write_jpegs(root / "images", size, images)]
            pack(root, SIDE, paths, workers, compressed=False)
            theirs = partial(_speed, image_folder(root / "images", config, batches), images)
            packed = PackedImages(root, SIDE).opener(paths)
            openers = {"files": ReducingOpener(root, paths), "packed pixels": packed}
            for kind, opener in openers.items():
                source = ImageSet(np.zeros(images, np.int64), paths, opener)
                read = partial(create_input(source, config, 3).train_batches, batches, 0, 0)
                what = f"{kind}, JPEG {size[0]}x{size[1]}, workers: {workers}"
                bound = MIN_RATIO_READING if size == JUDGED else None
                yield compare(what, partial(_speed, read, images), theirs, repeats, bound)


def training(quick: bool) -> Iterator[Row]:
    """Images per second of the training loop, beside a bare loop around a timm network, on ready
    batches and with their reading. Epochs of timm's test_resnet with SmoothAP, four images a class,
    one thread. Network, loss and optimiser are the same on both sides, so that 1 is the most on
    ready batches.
    """
    with tempfile.TemporaryDirectory() as folder:
        data = DatasetChoice("glyphs", "glyphs_tiny" if quick else "glyphs_1k", {})
        loops = Loops(data, 128, 1, GLYPHS, Path(folder) / "glyphs")
        yield from loops.compared("glyphs", 3 if quick else 4, "augmented", loops.read)
        if quick:
            return
        root = Path(folder) / "classes"
        write_jpegs(root, JUDGED, 2 * BATCH * 3)  # half of a folder's classes train
        data = DatasetChoice("folder", "folder", {"root": str(root)})
        loops = Loops(data, BATCH, 3, JPEGS | {"workers": WORKERS}, Path(folder) / "jpegs")
        names = loops.components.dataset.train.names
        batches = [[int(Path(names[each]).stem) for each in batch] for batch in loops.batches]
        theirs = image_folder(root, loops.spec.recipe.input, batches)
        read = lambda: (batch for batch, _ in theirs())  # noqa: E731
        yield from loops.compared("JPEG 500x400", 3, "from files", read)


def _speed(batches: Batches, images: int) -> float:
    """Return the images per second of an epoch."""
    started = time.perf_counter()
    for _ in batches():
        pass
    return images / (time.perf_counter() - started)


def write_jpegs(root: Path, size: tuple[int, int], count: int) -> list[str]:
    """Write made-up photographs (shapes with grain) into class folders; return their paths."""
    generator, (width, height) = np.random.default_rng(0), size
    paths = [f"class{number // 8:03d}/{number:05d}.jpg" for number in range(count)]
    for path in paths:
        patches = generator.integers(0, 256, (height // 16 + 2, width // 16 + 2, 3), dtype=np.uint8)
        smooth = np.asarray(Image.fromarray(patches).resize(size, Image.Resampling.BICUBIC))
        grain = generator.normal(0.0, 8.0, (height, width, 1)).astype(np.float32)
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        image = Image.fromarray((smooth + grain).clip(0, 255).astype(np.uint8))
        image.save(root / path, quality=90)
    return paths


def image_folder(root: Path, config: InputConfig, batches: Sequence[Sequence[int]]) -> Batches:
    """Return what a user would write: a function that gives an epoch of [images, labels].

    ``batches``: numbers of the JPEGs, which lie in their order in the folder.
    """
    prepare_torchvision()
    from torchvision import datasets, transforms

    crop = (config.image_size, config.crop_area, config.crop_aspect)
    steps = [
        transforms.Resize(config.resize),
        transforms.RandomResizedCrop(*crop),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(config.mean, config.std),
    ]
    images = datasets.ImageFolder(str(root), transforms.Compose(steps))
    workers = {"num_workers": config.workers, "persistent_workers": True}
    loader = DataLoader(images, batch_sampler=batches, **workers)
    return lambda: loader


class Loops:
    """The two ways to train on one dataset; each call goes on training for an epoch."""

    def __init__(
        self, data: DatasetChoice, batch: int, channels: int, images: dict[str, Any], folder: Path
    ):
        prepare_torchvision()
        import timm

        folder.mkdir()
        recipe = {
            "model": {"backbone": BACKBONE, "channels": channels, "embedding_dim": WIDTH},
            "input": images,
            "optimizer": {"name": "adamw", "lr": RATE},
            "sampler": {"name": "m_per_class", "params": {"samples_per_class": 4}},
            "training": {"epochs": 1, "threads": 1, "checkpoint_seconds": 1e9},
        }
        loss, recipe = LossChoice(LOSS, LOSS, {}), build(Recipe, recipe, "recipe")
        self.spec = RunSpec(data, Setting(BACKBONE), loss, batch, 0, recipe)
        self.folder, self.device = folder, prepare_numerics(recipe.training)
        no_evaluation = SimpleNamespace(embed=lambda *_: {})
        components = build_components(self.spec, self.device)
        self.components = replace(components, evaluator=no_evaluation)
        self.batches = components.sampler.epoch(0)
        self.labels = [components.labels[torch.from_numpy(each)] for each in self.batches]
        network = timm.create_model(BACKBONE, in_chans=channels, num_classes=WIDTH)
        self.network = network.to(self.device, memory_format=torch.channels_last).train()
        self.loss = create_loss(LOSS).to(self.device)
        settings = {"lr": RATE, "weight_decay": 0.0, "fused": True}
        self.optimizer = torch.optim.AdamW(self.network.parameters(), **settings)

    def compared(self, name: str, repeats: int, what: str, theirs: Batches) -> Iterator[Row]:
        """Give the comparison on batches in memory, and with the reading of both sides."""
        ready = partial(iter, list(self.read()))
        for words, *sides in (("ready batches", ready, ready), (what, self.read, theirs)):
            ours, bare = map(partial, (self.ours, self.bare), sides)
            yield compare(f"{name}, {words}", ours, bare, repeats, MIN_RATIO_TRAINING)

    def read(self) -> Iterator[torch.Tensor]:
        """Yield the images of an epoch, (B, C, H, W) each, as the suite reads them."""
        return self.components.train_input.train_batches(self.batches, self.spec.seed, 0)

    def ours(self, batches: Batches) -> float:
        """Return images per second of the suite's loop."""
        source = SimpleNamespace(train_batches=lambda *_, **__: batches())
        source.normalised = self.components.train_input.normalised
        components = replace(self.components, train_input=source)
        trainer = Trainer(components, self.folder, _Silence(self.spec.run_id, 1))
        trainer.state.batch_digests = [""] * HASHED_BATCHES  # later batches are not hashed
        trainer.run(StopRequest())
        return trainer.state.records[-1].images_per_second

    def bare(self, batches: Batches) -> float:
        """Return images per second of a network, an optimiser and a loss, and nothing else."""
        torch.use_deterministic_algorithms(False)
        images, started = 0, time.perf_counter()
        for batch, targets in zip(batches(), self.labels, strict=True):
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


def workflow(quick: bool) -> Iterator[Row]:
    """Start-up of a run by itself, from the command to the first step; and the study ``smoke`` from
    nothing to the report, whose runs take seconds, so that the rest weighs most (not if quick).
    """
    with tempfile.TemporaryDirectory() as alone, tempfile.TemporaryDirectory() as folder:
        _run(alone, "benchmark", "specs", "smoke")
        spec = min(Path(alone).glob(f"{RUNS}/{SPEC}"))
        command = ("benchmark", "train", "--spec", spec, "--out", spec.parent)
        _run(alone, *command, BENCHMARK_FORK_SERVER="off")
        startup = _timings(alone)[0]["startup_seconds"]
        yield {"what": "start-up of a run by itself, s", "value": startup}
        if quick:
            return
        wall = seconds_of(lambda: _run(folder, *STUDY, *LOCAL))
        timings = _timings(folder)
        useful = sum(timing["train_seconds"] + timing["eval_seconds"] for timing in timings)
        in_runs, available = (
            sum(each["total_seconds"] for each in timings),
            wall * available_cores(),
        )
        for what, value in {
            "runs": len(timings),
            "from nothing to the report, s": wall,
            "share of the cores' time that trains or evaluates": useful / available,
            "overhead of a run, s of a core": (available - useful) / len(timings),
            "of which outside of its process": max(available - in_runs, 0.0) / len(timings),
        }.items():
            yield {"what": f"study smoke: {what}", "value": value}


def _timings(folder: str) -> list[dict[str, float]]:
    paths = Path(folder).glob(f"{RUNS}/{PROVENANCE}")
    return [json.loads(path.read_text())["timing"] for path in paths]


def _run(folder: str, *module: str | Path, **variables: str) -> None:
    """Run ``python -m`` of a module with arguments, with the threads that its recipe says."""
    environment = {key: value for key, value in os.environ.items() if key not in THREADS}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", *map(str, module)]
    subprocess.run(command, cwd=folder, env=environment | variables, check=True, stdout=2)
