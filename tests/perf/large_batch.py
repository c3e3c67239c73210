"""Losses whose scores are held some rows at a time, up to all training images of SOP at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from benchmark.losses import create_loss
from benchmark.losses.conformance.memory import tensor_bytes
from benchmark.losses.kernels.fused import TILE_ENTRIES, row_tiles
from benchmark.report.drawing.drawing import save
from perf.figures import draw_losses
from perf.interleave import measure_methods
from perf.losses import DIMENSION, load_range
from perf.memory import peak_of_process
from perf.sections import Measurement, Row, Section, Target

OURS = ("smooth_ap", "sup_ap", "roadmap")
FLOOR, DENSE = "tiled products (floor)", "smooth_ap, all scores"
BATCH_SIZES = (256, 1024, 4096, 16384, 59551)
QUICK_BATCH_SIZES = (256, 1024)
PER_CLASS, REPEATED_TO, DENSE_TO = 5, 16384, 4096
# Bounds: times the floor, GiB beyond inputs and gradient, and the cost of tiles where all scores
# would do.
MAX_TIMES_FLOOR, MAX_GIB, MAX_TIMES_DENSE = 3, 1.5, 1.3


def section(out: Path, *, quick: bool, show: Callable[[str], None]) -> Section:
    """Measure each batch size and draw ``large_batch``."""
    rows: list[Row] = []
    for batch_size in QUICK_BATCH_SIZES if quick else BATCH_SIZES:
        rows += measure(batch_size)
        show(pd.DataFrame(rows[-len(OURS) - 2 :]).to_string(index=False))
    save(draw_losses(pd.DataFrame(rows), OURS), out, "large_batch")
    note = (
        f"{DIMENSION}-d float32 rows, {PER_CLASS} per class, tiles of about {TILE_ENTRIES:,} "
        "scores (a quarter of the batch where that is less). `times_floor`: multiples of the "
        "three products of each tile, 2 B^2 D operations each. `peak_mb`: tensors alive at once "
        f"beyond inputs and gradient; beyond batch {REPEATED_TO:,}, growth of the process. "
        f"{load_range(rows)}"
    )
    measurements = [Measurement(row, targets_of(row, rows)) for row in rows]
    return Section("large_batch", "Losses of large batches", note, measurements, "batch_size")


def measure(batch_size: int) -> list[Row]:
    """Return a row for each method at one batch size.

    The allocator's events of the largest batch would fill the memory; there the process's growth
    during the only pass is taken.
    """
    once = batch_size > REPEATED_TO
    generator = torch.Generator().manual_seed(0)
    free = torch.randn(batch_size, DIMENSION, generator=generator)
    embeddings = torch.nn.functional.normalize(free, dim=1).requires_grad_()
    labels = torch.arange(batch_size) // PER_CLASS
    rows = min(row_tiles(10**6, batch_size, None)[0][1], max(1, batch_size // 4))
    steps: dict[str, Callable[[], None]] = {FLOOR: partial(products, embeddings.detach(), rows)}
    for name in OURS:
        steps[name] = partial(_step, name, rows, embeddings, labels)
    if batch_size <= DENSE_TO:
        steps[DENSE] = partial(_step, OURS[0], batch_size, embeddings, labels)
    gradient = embeddings.numel() * embeddings.element_size() / 2**20
    measured = measure_methods(
        steps,
        peak_of_process if once else lambda call: tensor_bytes(call)[0],
        floor=FLOOR,
        library="",
        repeats=1 if once else 5,
        count_first=once,
    )
    for row in measured:
        if row["peak_mb"] is not None:
            row["peak_mb"] = max(0.0, row["peak_mb"] - gradient)
    return [{"batch_size": batch_size, "rows_per_tile": rows, **row} for row in measured]


def products(embeddings: Tensor, rows: int) -> None:
    """Make the scores of each tile, and both products of a gradient with it."""
    gradient = torch.zeros_like(embeddings)
    for start, stop in row_tiles(len(embeddings), len(embeddings), rows):
        part = embeddings[start:stop]
        scores = part @ embeddings.T
        gradient.addmm_(scores.T, part)
        gradient[start:stop].addmm_(scores, embeddings)


def targets_of(row: Row, rows: list[Row]) -> list[Target]:
    """Return the bounds of a row: at the largest batch, and where dense scores are measured."""
    if row["method"] not in OURS:
        return []
    batch_size, targets = row["batch_size"], []
    if batch_size == BATCH_SIZES[-1]:
        what, where = f"tiled losses, batch {batch_size:,}", row["method"]
        targets.append(
            Target(f"{what}, cost", row["times_floor"], MAX_TIMES_FLOOR, "x floor", where=where)
        )
        if row["peak_mb"] is not None:
            gib = row["peak_mb"] / 1024
            targets.append(Target(f"{what}, memory", gib, MAX_GIB, "GiB", where=where))
    if batch_size == DENSE_TO and row["method"] == OURS[0]:
        dense = next(
            other["milliseconds"]
            for other in rows
            if (other["batch_size"], other["method"]) == (batch_size, DENSE)
        )
        ratio = row["milliseconds"] / dense
        what = f"tiles against all scores, batch {batch_size:,}"
        targets.append(Target(what, ratio, MAX_TIMES_DENSE, "x all scores"))
    return targets


def _step(name: str, rows: int, embeddings: Tensor, labels: Tensor) -> None:
    loss = create_loss(name)
    loss.rows_per_tile = rows
    loss(embeddings, labels).backward()
    embeddings.grad = None  # so that each call makes its gradient, whose bytes are known
