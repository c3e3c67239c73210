"""Forward and backward time and peak memory of the score losses, alternatives and the floor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from benchmark.losses import create_loss
from benchmark.losses.conformance.memory import tensor_bytes
from benchmark.report.drawing.drawing import save
from perf import alternatives
from perf.figures import draw_losses
from perf.interleave import measure_methods
from perf.rates import machine_rates
from perf.sections import Measurement, Row, Section, Target

FLOOR = "score matrix (floor)"
LIBRARY = "PML SmoothAP"
BATCH_SIZES = (32, 64, 128, 256, 384, 512, 1024, 2048, 4096)
QUICK_BATCH_SIZES = (128, 384, 1024)
# The dense formulas hold five tensors of batch^3 numbers: 2.5 GiB at this size, 20 at twice it.
LARGEST_CUBIC = 512
DIMENSION, PER_CLASS = 512, 4
# Bounds: multiples of the floor from JUDGED_FROM on, times faster than the library at JUDGED_FROM,
# seconds and memory at LARGEST.
FLOOR_BOUNDS = {
    "smooth_ap": 3,
    "sup_ap": 3,
    "roadmap": 4,
    "fast_ap": 4,
    "softbin_ap": 4,
    "blackbox_ap": 6,
    "recall_at_k": 4,
    "smooth_recall": 4,
    "sup_recall": 4,
    "smooth_ndcg": 4,
    "sup_ndcg": 4,
    "approx_ndcg": 4,
    "pnp": 4,
}
LIBRARY_BOUNDS = {"smooth_ap": 150, "sup_ap": 100}
JUDGED_FROM, LARGEST = 384, 4096
MAX_SECONDS, MAX_GIB = 10, 4
OURS = (*FLOOR_BOUNDS, "calibration")


def section(out: Path, *, quick: bool, show: Callable[[str], None]) -> Section:
    """Measure balanced batches of many sizes; draw ``loss_time`` into ``out``."""
    return section_of_sizes(None, out, quick=quick, show=show)


def section_of_sizes(
    sizes: Iterable[int] | None, out: Path, *, quick: bool, show: Callable[[str], None]
) -> Section:
    """Measure balanced batches of these sizes (None: the usual ones), and show each at once."""
    repeats, seconds = (5, 1.0) if quick else (15, 4.0)
    rows: list[Row] = []
    for batch_size in sizes or (QUICK_BATCH_SIZES if quick else BATCH_SIZES):
        rows += measure(batch_size, repeats=repeats, seconds=seconds, show=show)
    save(draw_losses(pd.DataFrame(rows), OURS), out, "loss_time")
    largest = max(row["batch_size"] for row in rows)
    limit = machine_rates().limit(4 * largest**2 * DIMENSION, 16 * largest**2)
    note = (
        f"{DIMENSION}-d float32 rows, {PER_CLASS} per class. `times_floor`: multiples of the score "
        f"matrix and its backward pass. `times_faster`: than {LIBRARY}, whose time alone compares: "
        f"it computes another function (docs/conformance.md). `peak_mb`: tensors alive at once "
        f"beyond inputs. {load_range(rows)} Physical limit at batch {largest:,}, with two "
        f"matrix products and with scores and their gradient written and read once: {limit}."
    )
    return section_of("losses", "Losses", note, rows)


def section_of(name: str, title: str, note: str, rows: Sequence[Row]) -> Section:
    """Return the section of these rows with their targets."""
    measurements = [Measurement(row, targets_of(row)) for row in rows]
    return Section(name, title, note, measurements, "batch_size")


def targets_of(row: Row) -> list[Target]:
    """Return the bounds of a row."""
    name, batch_size, where = row["method"], row["batch_size"], f"batch {row['batch_size']}"
    bound, faster, targets = FLOOR_BOUNDS.get(name), LIBRARY_BOUNDS.get(name), []
    if bound and row["classes"] == "balanced" and batch_size >= JUDGED_FROM:
        targets.append(Target(f"{name}, cost", row["times_floor"], bound, "x floor", where=where))
    if faster and batch_size == JUDGED_FROM and (value := row["times_faster"]):
        unit = f"x {LIBRARY}"
        targets.append(Target(f"{name}, speed", value, faster, unit, at_least=True, where=where))
    if bound and batch_size == LARGEST:
        what = f"every AP loss, batch {LARGEST:,}, {row['classes']} classes"
        for kind, value, most, unit in (
            ("time", row["milliseconds"] / 1000, MAX_SECONDS, "s"),
            ("memory", row["peak_mb"] / 1024, MAX_GIB, "GiB"),
        ):
            targets.append(Target(f"{what}, {kind}", value, most, unit, where=name))
    return targets


def load_range(rows: Sequence[Row]) -> str:
    """Return a sentence on how busy the machine was."""
    loads = [row["load"] for row in rows]
    return f"Load of the machine {min(loads):.1f} to {max(loads):.1f}."


def measure(
    batch_size: int,
    *,
    repeats: int,
    seconds: float,
    classes: str = "balanced",
    show: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """Return a row for each method at one batch size: 512-d unit rows, float32.

    ``classes``: "balanced", four images a class, or "quarter", one class with a quarter of the
    batch and four images of each other. A method that has used up ``seconds`` is not repeated.
    """
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(batch_size, DIMENSION, generator=generator)
    embeddings = torch.nn.functional.normalize(rows, dim=1).requires_grad_()
    labels = torch.arange(batch_size) // PER_CLASS
    if classes == "quarter":
        labels[: batch_size // 4] = 0
    steps = {
        name: partial(_step, step, embeddings, labels)
        for name, step in _methods(batch_size, classes)
    }
    settings = {"floor": FLOOR, "library": LIBRARY, "repeats": repeats, "seconds": seconds}
    measured = measure_methods(steps, lambda call: tensor_bytes(call)[0], **settings)
    show(f"batch {batch_size}, {classes} classes, {load_range(measured)}")
    show(pd.DataFrame(measured).to_string(index=False, float_format="{:.2f}".format))
    return [{"batch_size": batch_size, "classes": classes, **row} for row in measured]


def _methods(batch_size: int, classes: str) -> Iterable[tuple[str, alternatives.Step]]:
    yield FLOOR, alternatives.floor(batch_size)
    for name in OURS:
        loss, generator = create_loss(name), torch.Generator().manual_seed(0)
        yield name, partial(loss, generator=generator)
    yield "PML FastAP", alternatives.library("FastAPLoss")
    if batch_size <= LARGEST_CUBIC and classes == "balanced":  # which the library's SmoothAP needs
        yield LIBRARY, alternatives.library("SmoothAPLoss")
        yield "dense SmoothAP", alternatives.dense_smooth_ap
        yield "dense SupAP", alternatives.dense_sup_ap


def _step(step: alternatives.Step, embeddings: Tensor, labels: Tensor) -> None:
    embeddings.grad = None
    step(embeddings, labels).backward()
