"""Losses whose scores are held some rows at a time, up to all training images of SOP at once: 512-d
float32 rows, five per class. ``times_floor``: multiples of the three products of each tile.
``peak_mb``: tensors alive at once beyond inputs and gradient; of the largest batch, growth of the
process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from benchmark.losses import create_loss
from benchmark.losses.conformance.checks import tensor_bytes
from benchmark.losses.kernels.fused import row_tiles
from perf.losses import DIMENSION
from perf.timing import Row, Target, measure_methods, peak_of_process

OURS = ("smooth_ap", "sup_ap", "roadmap")
FLOOR, DENSE = "tiled products (floor)", "smooth_ap, all scores"
BATCH_SIZES, QUICK_BATCH_SIZES = (256, 1024, 4096, 16384, 59551), (256, 1024)
PER_CLASS, REPEATED_TO, DENSE_TO = 5, 16384, 4096
# Times the floor, GiB beyond inputs and gradient, and tiles against all scores at once.
MAX_TIMES_FLOOR, MAX_GIB, MAX_TIMES_DENSE = 3, 1.5, 1.3


def rows(quick: bool) -> Iterator[Row]:
    """Measure each batch size."""
    for batch_size in QUICK_BATCH_SIZES if quick else BATCH_SIZES:
        measured = {row["method"]: row for row in measure(batch_size)}
        for name, row in measured.items():
            what, targets = f"tiled losses, batch {batch_size:,}", []
            if name in OURS and batch_size == BATCH_SIZES[-1]:
                memory = row["peak_mb"] / 1024
                targets.append(
                    Target(f"{what}, cost", row["times_floor"], MAX_TIMES_FLOOR, "x floor")
                )
                targets.append(Target(f"{what}, memory", memory, MAX_GIB, "GiB"))
            if name == OURS[0] and batch_size == DENSE_TO:
                ratio = row["milliseconds"] / measured[DENSE]["milliseconds"]
                what = f"tiles against all scores, batch {batch_size:,}"
                targets.append(Target(what, ratio, MAX_TIMES_DENSE, "x all scores"))
            yield {**row, "targets": targets}


def measure(batch_size: int) -> list[Row]:
    """Return a row for each method at one batch size.

    The allocator's events of the largest batch would fill the memory; there the process's growth
    during the only pass is taken.
    """
    once = batch_size > REPEATED_TO
    free = torch.randn(batch_size, DIMENSION, generator=torch.Generator().manual_seed(0))
    embeddings = torch.nn.functional.normalize(free, dim=1).requires_grad_()
    labels = torch.arange(batch_size) // PER_CLASS
    tile = min(row_tiles(10**6, batch_size, None)[0][1], max(1, batch_size // 4))
    steps: dict[str, Callable[[], None]] = {FLOOR: partial(_products, embeddings.detach(), tile)}
    for name in OURS:
        steps[name] = partial(_step, name, tile, embeddings, labels)
    if batch_size <= DENSE_TO:
        steps[DENSE] = partial(_step, OURS[0], batch_size, embeddings, labels)
    gradient = embeddings.numel() * embeddings.element_size() / 2**20
    peak = peak_of_process if once else lambda call: tensor_bytes(call)[0]
    measured = measure_methods(steps, peak, floor=FLOOR, repeats=1 if once else 5, count_first=once)
    for row in measured:
        row["peak_mb"] = max(0.0, row["peak_mb"] - gradient)
    return [{"batch_size": batch_size, "rows_per_tile": tile, **row} for row in measured]


def _products(embeddings: Tensor, tile: int) -> None:
    """Make the scores of each tile, and both products of a gradient with it."""
    gradient = torch.zeros_like(embeddings)
    for start, stop in row_tiles(len(embeddings), len(embeddings), tile):
        part = embeddings[start:stop]
        scores = part @ embeddings.T
        gradient.addmm_(scores.T, part)
        gradient[start:stop].addmm_(scores, embeddings)


def _step(name: str, tile: int, embeddings: Tensor, labels: Tensor) -> None:
    loss = create_loss(name)
    loss.rows_per_tile = tile
    loss(embeddings, labels).backward()
    embeddings.grad = None  # so that each call makes its gradient, whose bytes are known
