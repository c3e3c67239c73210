"""Time of the losses beside that of the network, in the form of Smooth-AP's table S1."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmark.core.recipe_model import ModelConfig
from benchmark.losses import LOSSES, create_loss
from benchmark.models import create_model
from benchmark.papers.paper import load_papers
from perf.interleave import seconds_of
from perf.rates import machine_rates
from perf.sections import Measurement, Section, load

BATCH, PER_CLASS, SIDE, DIMENSION = 112, 4, 224, 512
AT_ONCE = 28  # images in one pass of the network: as many as usual machines hold
# of a ResNet-50 for one image (He et al., CVPR 2016, table 1); backward takes twice as many
MULTIPLY_ADDS = 3.8e9
# loss, hyperparameters of the paper's comparison, row of table S1, complexity here per batch
COMPARED: tuple[tuple[str, dict[str, Any], str | None, str], ...] = (
    ("blackbox_ap", {}, "Blackbox AP", "B x P x B"),
    ("fast_ap", {"bins": 20}, "FastAP", "B x B"),
    ("smooth_ap", {}, "Smooth-AP", "B x P x B"),
    ("sup_ap", {}, None, "B x P x B"),
    ("roadmap", {}, None, "B x P x B"),
    ("softbin_ap", {}, None, "B x B"),
)


def section(out: Path, *, quick: bool, show: Callable[[str], None]) -> Section:
    """Measure a ResNet-50 and the losses at batch 112, four images a class, as the paper did."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    begin, images = load(), 4 if quick else BATCH
    backbone = backbone_ms(images, device) * BATCH / images
    printed = load_papers()["smoothap2020"].table("tableS1")
    published = {(each.row_label, each.metric): float(each.value) for each in printed}
    measurements = []
    for name, hyperparameters, label, complexity in COMPARED:
        loss = loss_ms(name, hyperparameters, device, repeats=20)
        row = {
            "method": LOSSES[name].display,
            "complexity": complexity,
            "backbone_ms": backbone,
            "loss_ms": loss,
            "loss_percent": 100 * loss / backbone,
            "published_backbone_ms": published.get((label, "backbone_time")),
            "published_loss_ms": published.get((label, "loss_time")),
        }
        measurements.append(Measurement(row))
        show(f"  {row['method']:<14} loss {loss:8.2f} ms   backbone {backbone:10.0f} ms")
    note = (
        f"Forward + backward at batch {BATCH}, {PER_CLASS} images a class, ResNet-50 on {SIDE} x "
        f"{SIDE} pixels, on {device}, {torch.get_num_threads()} threads; B images, P positives of "
        f"each. The network was timed on {images} images, {min(images, AT_ONCE)} at once, and "
        f"scaled to {BATCH}. Published: Smooth-AP, table S1, on the authors' machine. Load "
        f"{max(begin, load()):.1f}. {_limits(device)}"
    )
    title = "Loss time beside backbone time (Smooth-AP, table S1)"
    return Section("backbone", title, note, measurements)


def backbone_ms(images: int, device: torch.device) -> float:
    """Return the milliseconds of one pass of a ResNet-50, forward and backward, over images."""
    config = ModelConfig(backbone="resnet50", embedding_dim=DIMENSION)
    network = create_model(config, seed=0).to(device).train()
    part = torch.randn(min(images, AT_ONCE), 3, SIDE, SIDE, device=device)
    network(part[:2]).sum().backward()  # the first pass also sets up
    parts = images // len(part)
    passes = sum(seconds_of(lambda: network(part).sum().backward(), device) for _ in range(parts))
    return 1000 * passes / (parts * len(part)) * images


def loss_ms(
    name: str, hyperparameters: dict[str, Any], device: torch.device, repeats: int
) -> float:
    """Return the median milliseconds of one pass of a loss at batch 112."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(BATCH, DIMENSION, generator=generator)
    embeddings = torch.nn.functional.normalize(rows, dim=1).to(device).requires_grad_()
    labels = torch.arange(BATCH) // PER_CLASS
    loss = create_loss(name, **hyperparameters)

    def step() -> None:
        embeddings.grad = None
        loss(embeddings, labels, generator=generator).backward()

    return 1000 * statistics.median([seconds_of(step, device) for _ in range(repeats + 1)][1:])


def _limits(device: torch.device) -> str:
    """Return a sentence on the physical limits of both sides, which are known on a CPU."""
    if device.type != "cpu":
        return ""
    rates = machine_rates()
    return (
        f"Physical limits: network {rates.limit(6 * MULTIPLY_ADDS * BATCH, 0)}; "
        f"loss {rates.limit(4 * BATCH**2 * DIMENSION, 12 * BATCH * DIMENSION)}."
    )
