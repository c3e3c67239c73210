"""Forward and backward of the losses, alternatives and the floor: 512-d float32 rows, four images a
class, or one class with a quarter of the batch. ``times_floor``: multiples of the score matrix and
its backward pass. ``times_faster``: than PML SmoothAP, which computes another function
(docs/conformance.md). ``peak_mb``: tensors alive at once beyond inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from benchmark.losses import create_loss
from benchmark.losses.conformance.checks import tensor_bytes
from benchmark.report.drawing import (
    DOUBLE,
    FAINT,
    INK,
    Drawing,
    legend_below,
    line,
    new_figure,
    save,
    styled,
)
from perf import alternatives
from perf.timing import Row, Target, measure_methods

FLOOR, LIBRARY = "score matrix (floor)", "PML SmoothAP"
BATCH_SIZES = (32, 64, 128, 256, 384, 512, 1024, 2048, 4096)
QUICK_BATCH_SIZES = (128, 384, 1024)
LARGE_CLASSES = (1024, 2048, 4096)
# The dense formulas hold five tensors of batch^3 numbers: 2.5 GiB at this size, 20 at twice it.
LARGEST_CUBIC = 512
DIMENSION, PER_CLASS = 512, 4
# Multiples of the floor from JUDGED_FROM on, and times faster than the library at JUDGED_FROM.
FLOOR_BOUNDS = dict.fromkeys(
    ("roadmap", "fast_ap", "softbin_ap", "recall_at_k", "smooth_recall", "sup_recall",
     "smooth_ndcg", "sup_ndcg", "approx_ndcg", "pnp"), 4
) | {"smooth_ap": 3, "sup_ap": 3, "blackbox_ap": 6}  # fmt: skip
LIBRARY_BOUNDS = {"smooth_ap": 150, "sup_ap": 100}
JUDGED_FROM, LARGEST, MAX_SECONDS, MAX_GIB = 384, 4096, 10, 4
OURS = (*FLOOR_BOUNDS, "calibration")


def rows(quick: bool) -> Iterator[Row]:
    """Measure balanced batches of many sizes, then those with one large class."""
    repeats, seconds = (5, 1.0) if quick else (15, 4.0)
    for batch_size in QUICK_BATCH_SIZES if quick else BATCH_SIZES:
        yield from measure(batch_size, repeats, seconds)
    for batch_size in LARGE_CLASSES[: 1 if quick else None]:
        yield from measure(batch_size, 3, 1.0 if quick else 10.0, classes="quarter")


def targets_of(row: Row) -> list[Target]:
    """Return the bounds of a row."""
    name, batch_size, classes = row["method"], row["batch_size"], row["classes"]
    bound, faster, targets = FLOOR_BOUNDS.get(name), LIBRARY_BOUNDS.get(name), []
    if bound and classes == "balanced" and batch_size >= JUDGED_FROM:
        targets.append(Target(f"{name}, cost", row["times_floor"], bound, "x floor"))
    if faster and batch_size == JUDGED_FROM and (value := row["times_faster"]):
        targets.append(Target(f"{name}, speed", value, faster, f"x {LIBRARY}", at_least=True))
    if bound and batch_size == LARGEST:
        what = f"every AP loss, batch {LARGEST:,}, {classes} classes"
        targets.append(Target(f"{what}, time", row["milliseconds"] / 1000, MAX_SECONDS, "s"))
        targets.append(Target(f"{what}, memory", row["peak_mb"] / 1024, MAX_GIB, "GiB"))
    return targets


def measure(
    batch_size: int, repeats: int, seconds: float, classes: str = "balanced"
) -> Iterator[Row]:
    """Give a row for each method at one batch size; ``classes``: "balanced" or "quarter"."""
    generator = torch.Generator().manual_seed(0)
    free = torch.randn(batch_size, DIMENSION, generator=generator)
    embeddings = torch.nn.functional.normalize(free, dim=1).requires_grad_()
    labels = torch.arange(batch_size) // PER_CLASS
    if classes == "quarter":
        labels[: batch_size // 4] = 0
    steps = {
        name: partial(_step, step, embeddings, labels)
        for name, step in _methods(batch_size, classes)
    }
    settings = {"floor": FLOOR, "library": LIBRARY, "repeats": repeats, "seconds": seconds}
    for row in measure_methods(steps, lambda call: tensor_bytes(call)[0], **settings):
        row = {"batch_size": batch_size, "classes": classes, **row}
        yield {**row, "targets": targets_of(row)}


def _methods(batch_size: int, classes: str) -> Iterator[tuple[str, alternatives.Step]]:
    from pytorch_metric_learning import losses as library

    yield FLOOR, alternatives.floor(batch_size)
    for name in OURS:
        yield name, partial(create_loss(name), generator=torch.Generator().manual_seed(0))
    yield "PML FastAP", library.FastAPLoss()
    if batch_size <= LARGEST_CUBIC and classes == "balanced":  # which the library's SmoothAP needs
        yield LIBRARY, library.SmoothAPLoss()
        yield "dense SmoothAP", alternatives.dense_smooth_ap
        yield "dense SupAP", alternatives.dense_sup_ap


def _step(step: alternatives.Step, embeddings: Tensor, labels: Tensor) -> None:
    embeddings.grad = None
    step(embeddings, labels).backward()


def draw(table: pd.DataFrame, out: Path) -> None:
    """Draw ``loss_time``: time and memory against batch size; alternatives are grey."""
    data = table[table["classes"] == "balanced"]
    with styled():
        figure, axes = new_figure(DOUBLE, 3.9, 1, 2)
        for axis, column, label in (
            (axes[0, 0], "milliseconds", "forward + backward (ms)"),
            (axes[0, 1], "peak_mb", "peak memory of tensors (MiB)"),
        ):
            marks = iter("os^DvP")
            for name, points in data.groupby("method", sort=False):
                if name == FLOOR:
                    style = {"color": INK, "linewidth": 1.6}
                else:
                    grey = {"color": FAINT, "linestyle": "--", "markerfacecolor": "white"}
                    style = line(name) if name in OURS else {**grey, "marker": next(marks)}
                axis.plot(points["batch_size"], points[column], label=name, **style)
            axis.set_xscale("log", base=2)
            axis.set(yscale="log", xlabel="batch size", ylabel=label)
        legend_below(figure)
    words = "Time and peak memory of one forward and backward pass against batch size; log axes."
    save(Drawing("Cost of the losses", words, words, figure, data), out, "loss_time")
