"""Losses on the GPU: equal to the CPU, and what they cost beside the score matrix."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmark.losses import LOSSES, create_loss
from benchmark.losses.base import ScoreLoss
from perf import alternatives
from perf.gpu.measuring import Place, Row, labels_of

# Where a score lies near a step of the loss, the last bit of it decides.
TOLERANCES = {"float32": 2e-4, "autocast": 5e-2}
FLOOR = "score matrix"
LARGEST_CUBIC = 512
TILED = (30_000, 60_000)


def own_losses() -> list[str]:
    """Return the names of the losses of scores, whose kernels are the suite's."""
    return [entry.name for entry in LOSSES if issubclass(entry.target, ScoreLoss)]


def backward(loss: Any, embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the value and the gradient of the embeddings."""
    rows = embeddings.detach().requires_grad_()
    value = loss(rows, labels)
    value.backward()
    return value.detach(), rows.grad


def values(place: Place) -> Iterator[Row]:
    """Compare values and gradients with those of the CPU in float64, per loss and precision."""
    for name, precision in itertools.product(own_losses(), TOLERANCES):
        row = {"loss": name, "precision": precision, "random": name == "recall_at_k"}
        yield place.tried(row, partial(_off, place, name, precision))


def _off(place: Place, name: str, precision: str) -> Row:
    size, settings = 32 if place.small else 384, {"margin": 0.0} if name == "blackbox_ap" else {}
    loss, rows, labels = (
        create_loss(name, check=False, **settings),
        place.batch(size, 64),
        labels_of(size),
    )
    wanted, slope = backward(loss.double(), rows.cpu().double(), labels)
    with torch.autocast(place.device.type, torch.bfloat16, enabled=precision == "autocast"):
        torch.manual_seed(0)
        value, gradient = backward(loss.float(), rows, labels)
    off = float((value.cpu().double() - wanted).abs() / wanted.abs().clamp(min=1e-3))
    slope_off = float((gradient.cpu().double() - slope).norm() / slope.norm().clamp(min=1e-9))
    good = off < TOLERANCES[precision] and slope_off < 10 * TOLERANCES[precision]
    return {"value": off, "gradient": slope_off, "within": good}


def times(place: Place) -> Iterator[Row]:
    """Time forward + backward of each loss, the score matrix, the dense formula, compiled too."""
    sizes = (32, 64) if place.small else (128, 384, 1024, 4096, 16_384)
    tiled = (96,) if place.small else TILED
    for size in (*sizes, *tiled):
        rows, labels = place.batch(size), labels_of(size)
        floor = None
        for name, method in _methods(place, size, sizes, labels).items():
            row = {"batch_size": size, "method": name, "tiled": size in tiled}
            work = partial(backward, method, rows, labels)
            row = place.tried(row, partial(_cost, place, work, 3 if size in tiled else 7))
            floor = row.get("milliseconds") if name == FLOOR else floor
            if floor and "milliseconds" in row:
                row["times_floor"] = row["milliseconds"] / floor
            yield row


def _cost(place: Place, work: Callable[[], object], repeats: int) -> Row:
    return {"milliseconds": place.milliseconds(work, repeats), "peak_mb": place.peak_mb(work)}


def _methods(place: Place, size: int, sizes: Sequence[int], labels: Tensor) -> dict[str, Any]:
    """Return what is timed at a batch size; beyond ``sizes`` there are tiles alone."""
    methods: dict[str, Any] = {FLOOR: alternatives.floor(size)} if size <= max(sizes) else {}
    for name in own_losses():
        methods[name] = create_loss(name, check=False)
        if size not in sizes and place.small:
            methods[name].rows_per_tile = 16
    if size <= LARGEST_CUBIC:
        compiler = "eager" if place.small else "inductor"  # which needs a compiler of C++ on a CPU
        dense = partial(_dense, labels.to(place.device))
        methods["dense SmoothAP"] = dense
        methods["dense SmoothAP, torch.compile"] = torch.compile(dense, backend=compiler)
    return methods


def _dense(labels: Tensor, embeddings: Tensor, _: Tensor) -> Tensor:
    return alternatives.dense_smooth_ap(embeddings, labels)
