"""Training on the GPU: the loss's share, a bare loop, the input, resuming, and memory."""

from __future__ import annotations

import io
import itertools
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from PIL import Image

from benchmark.core.recipe import ModelConfig, TrainingConfig
from benchmark.core.recipe_input import InputConfig
from benchmark.datasets.base import ImageSet
from benchmark.input.create import create_input
from benchmark.losses import create_loss
from benchmark.models import create_model
from benchmark.training.numerics import autocast
from benchmark.training.step import Stepper
from perf.gpu.measuring import Place, Row, labels_of

ROOT = Path(__file__).resolve().parents[3]
NETWORKS = {"ResNet-50": "resnet50", "DeiT-S": "deit_small_patch16_224"}
SMALL = {"ResNet-50": "test_resnet"}
SHARE_OF_BARE_LOOP = 0.97


def stepper(place: Place, backbone: str, loss: str = "smooth_ap", **training: Any) -> Stepper:
    """Return a stepper as a run has it, of an untrained network."""
    config = ModelConfig(backbone=backbone, embedding_dim=64, freeze_batch_norm=True)
    model = create_model(config, 0).to(place.device, memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5, fused=True)
    settings = TrainingConfig(**{"precision": "bfloat16", **training})
    scaler = torch.amp.GradScaler(enabled=False)
    return Stepper(
        model, create_loss(loss, check=False), optimizer, scaler, settings, place.device, 0
    )


def images_of(place: Place, size: int, side: int) -> torch.Tensor:
    images = torch.randn(size, 3, side, side, generator=torch.Generator().manual_seed(0))
    images = images.contiguous(memory_format=torch.channels_last)
    return images.pin_memory() if place.device.type == "cuda" else images


def share(place: Place) -> Iterator[Row]:
    """Give the share of the loss in a training step, and the step beside a bare loop's."""
    networks, sizes = (SMALL, (8,)) if place.small else (NETWORKS, (128, 384))
    for (network, backbone), size in itertools.product(networks.items(), sizes):
        row = {"network": network, "batch_size": size}
        yield place.tried(row, partial(_share, place, backbone, size))


def _share(place: Place, backbone: str, size: int) -> Row:
    step, labels = stepper(place, backbone), labels_of(size)
    images = images_of(place, size, 64 if place.small else 224)
    ours = place.milliseconds(partial(step, images, labels, 0), 9)
    step.stopwatch.drain()
    repeats = 2 if place.small else 5
    for number in range(repeats):
        step(images, labels, number)
    loss_ms = 1000 * step.stopwatch.drain() / repeats
    bare = place.milliseconds(partial(_bare, place, step, images, labels), 9) / ours
    within = {} if place.small else {"within": bare >= SHARE_OF_BARE_LOOP}
    peak = place.peak_mb(partial(step, images, labels, 0))
    row = {"loss_ms": loss_ms, "step_ms": ours, "loss_share": loss_ms / ours, "of_bare_loop": bare}
    return {**row, **within, "peak_mb": peak}


def _bare(place: Place, step: Stepper, images: torch.Tensor, labels: torch.Tensor) -> None:
    """Take the step that a loop of ten lines would take, with the same loss."""
    step.optimizer.zero_grad(set_to_none=True)
    with autocast(step.config, place.device):
        embeddings = step.model(images.to(place.device, non_blocking=True))
    step.loss(embeddings, labels).backward()
    step.optimizer.step()


def reading(place: Place) -> Iterator[Row]:
    """Give images a second of the input, from packed pixels and packed JPEGs."""
    count = 32 if place.small else 512
    pixels = np.random.default_rng(0).integers(0, 255, (count, 256, 256, 3), dtype=np.uint8)
    for kind, opener in (("packed pixels", Pixels), ("packed JPEGs", Jpegs)):
        workers = 0 if place.small else 8
        row = {"source": kind, "workers": workers}
        yield place.tried(row, partial(_rate, place, opener, pixels, workers))


def _rate(place: Place, opener: type[Pixels | Jpegs], pixels: np.ndarray, workers: int) -> Row:
    count, side = len(pixels), 64 if place.small else 224
    config = InputConfig(augmentation="crop_flip", image_size=side, resize=256, workers=workers)
    names = [str(number) for number in range(count)]
    source = create_input(ImageSet(np.arange(count) // 4, names, opener(pixels)), config, 3)
    batches = list(np.arange(count).reshape(-1, 32))
    for _ in source.train_batches(batches, 0, 0):  # workers start
        pass
    start = time.perf_counter()
    for images in source.train_batches(batches, 0, 1):
        images.to(place.device)
    place.wait()
    return {"images_per_second": count / (time.perf_counter() - start)}


class Pixels:
    """Opens images that lie in memory."""

    def __init__(self, pixels: np.ndarray):
        self.pixels = pixels

    def __call__(self, index: int) -> Image.Image:
        return Image.fromarray(self.pixels[index])


class Jpegs:
    """Opens images from the bytes of files."""

    def __init__(self, pixels: np.ndarray):
        self.content = [io.BytesIO() for _ in pixels]
        for file, image in zip(self.content, pixels, strict=True):
            Image.fromarray(image).save(file, "JPEG")

    def __call__(self, index: int) -> Image.Image:
        return Image.open(io.BytesIO(self.content[index].getvalue())).convert("RGB")


def resuming(place: Place) -> Iterator[Row]:
    """Say whether steps after a saved and loaded state end in the same bits."""
    for loss in ("smooth_ap", "roadmap", "blackbox_ap"):
        yield place.tried({"loss": loss}, partial(_resumed, place, loss))


def _resumed(place: Place, loss: str) -> Row:
    backbone, side = ("test_resnet", 64) if place.small else ("resnet50", 224)
    images, labels = images_of(place, 16, side), labels_of(16)
    whole, saved = stepper(place, backbone, loss), io.BytesIO()
    for number in range(4):
        whole(images, labels, number)
        if number == 1:
            torch.save(whole.state_dict(), saved)
    saved.seek(0)
    again = stepper(place, backbone, loss)
    again.load_state_dict(torch.load(saved, map_location="cpu", weights_only=True))
    for number in (2, 3):
        again(images, labels, number)
    one, other = whole.model.state_dict(), again.model.state_dict()
    return {"within": all(torch.equal(one[name], other[name]) for name in one)}


def recipes(place: Place) -> Iterator[Row]:
    """Give the peak memory of a step at batch 128 under each network of the papers' recipes."""
    seen = set()
    for path in sorted((ROOT / "workflow" / "config" / "recipes").glob("*.yaml")):
        recipe = _read(path)
        model, view, training = (recipe.get(key, {}) for key in ("model", "input", "training"))
        side, backbone = view.get("image_size", 224), model["backbone"].partition(".")[0]
        kind = (backbone, side, training.get("precision", "float32"), training.get("micro_batch"))
        if kind in seen or path.name.startswith("glyphs") or (place.small and seen):
            continue
        seen.add(kind)
        row = {"recipe": path.stem, "backbone": backbone, "batch_size": 128}
        yield place.tried(row, partial(_peak, place, *kind))


def _peak(place: Place, backbone: str, side: int, precision: str, micro_batch: int | None) -> Row:
    if place.small:
        backbone, side = "test_resnet", 64
    step = stepper(place, backbone, precision=precision, micro_batch=micro_batch)
    size = 8 if place.small else 128
    images, labels = images_of(place, size, side), labels_of(size)
    return {"peak_mb": place.peak_mb(partial(step, images, labels, 0))}


def _read(path: Path) -> dict[str, Any]:
    """Return a recipe laid over the one that it extends."""
    own = yaml.safe_load(path.read_text())
    below = _read(path.with_name(f"{own['extends']}.yaml")) if "extends" in own else {}
    sections = {key: value for key, value in own.items() if isinstance(value, dict)}
    return below | {key: {**below.get(key, {}), **value} for key, value in sections.items()}
