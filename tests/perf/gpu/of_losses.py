"""Losses on the GPU: equal to the CPU, and what they cost beside the score matrix."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmark.losses import LOSSES, create_loss
from benchmark.losses.base import ScoreLoss
from perf import alternatives
from perf.gpu.measuring import Place, labels_of

# Where a score lies near a step of the loss, the last bit of it decides.
TOLERANCES = {"float32": 2e-4, "autocast": 5e-2}
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


def values(place: Place) -> list[dict[str, Any]]:
    """Compare values and gradients with those of the CPU in float64, per loss and precision."""
    found = []
    size = 32 if place.small else 384
    for name in own_losses():
        if place.over:
            found.append({"loss": name, "skipped": "out of time"})
            continue
        settings = {"margin": 0.0} if name == "blackbox_ap" else {}
        loss = create_loss(name, seed=0, **settings)
        rows, labels = place.batch(size, 64), labels_of(size)
        wanted, slope = backward(loss.double(), rows.cpu().double(), labels)
        for precision in TOLERANCES:
            on = precision == "autocast"
            with torch.autocast(place.device.type, torch.bfloat16, enabled=on):
                torch.manual_seed(0)
                value, gradient = backward(loss.float(), rows, labels)
            off = float((value.cpu().double() - wanted).abs() / wanted.abs().clamp(min=1e-3))
            slope_off = float(
                (gradient.cpu().double() - slope).norm() / slope.norm().clamp(min=1e-9)
            )
            good = off < TOLERANCES[precision] and slope_off < 10 * TOLERANCES[precision]
            found.append(
                {"loss": name, "precision": precision, "value": off, "gradient": slope_off}
                | {"within": good, "random": name == "recall_at_k"}
            )
    return found


def times(place: Place) -> list[dict[str, Any]]:
    """Time forward + backward of each loss, the score matrix, the dense formula, compiled too."""
    found: list[dict[str, Any]] = []
    sizes = (32, 64) if place.small else (128, 384, 1024, 4096, 16_384)
    tiled = (96,) if place.small else TILED
    compiler = "eager" if place.small else "inductor"  # which needs a compiler of C++ on a CPU
    for size in (*sizes, *tiled):
        rows, labels = place.batch(size), labels_of(size)
        methods: dict[str, Any] = {}
        if size <= max(sizes):
            methods["score matrix"] = alternatives.floor(size)
        for name in own_losses():
            methods[name] = create_loss(name, seed=0)
            if size in tiled and place.small:
                methods[name].rows_per_tile = 16
        if size <= LARGEST_CUBIC:
            on_device = labels.to(place.device)
            dense = partial(_dense, on_device)
            methods["dense SmoothAP"] = dense
            methods["dense SmoothAP, torch.compile"] = torch.compile(dense, backend=compiler)
        floor = None
        for name, method in methods.items():
            row: dict[str, Any] = {"batch_size": size, "method": name, "tiled": size in tiled}
            if place.over:
                found.append({**row, "skipped": "out of time"})
                continue
            try:
                work = partial(backward, method, rows, labels)
                row["milliseconds"] = place.milliseconds(work, 3 if size in tiled else 7)
                row["peak_mb"] = place.peak_mb(work)
            except Exception as error:
                found.append({**row, "failed": f"{type(error).__name__}: {error}"[:200]})
                continue
            floor = row["milliseconds"] if name == "score matrix" else floor
            row["times_floor"] = row["milliseconds"] / floor if floor else None
            found.append(row)
    return found


def _dense(labels: Tensor, embeddings: Tensor, _: Tensor) -> Tensor:
    return alternatives.dense_smooth_ap(embeddings, labels)
