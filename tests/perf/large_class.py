"""Losses on a batch in which one class holds a quarter of the images: the most pairs to visit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from perf.losses import DIMENSION, load_range, measure, section_of
from perf.rates import machine_rates
from perf.sections import Row, Section

BATCH_SIZES = (1024, 2048, 4096)


def section(out: Path, *, quick: bool, show: Callable[[str], None]) -> Section:
    """Measure the losses on large classes."""
    rows: list[Row] = []
    for batch_size in BATCH_SIZES[: 1 if quick else None]:
        seconds = 1.0 if quick else 10.0
        rows += measure(batch_size, repeats=3, seconds=seconds, classes="quarter", show=show)
    largest = max(row["batch_size"] for row in rows)
    pairs = (largest // 4) ** 2 * largest
    limit = machine_rates().limit(4 * largest**2 * DIMENSION + 4 * pairs, 16 * largest**2)
    note = (
        "As above, but one class holds a quarter of the batch, the others four images each. "
        f"{load_range(rows)} Physical limit of a loss that visits each pair of a positive and an "
        f"item once, at batch {largest:,} ({pairs:,} pairs, four operations each): {limit}."
    )
    return section_of("large_class", "Losses, one class with a quarter of the batch", note, rows)
