"""Losses on a batch in which one class holds a quarter of the images: where the cost of pairs would explode."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from perf.losses import (
    DIMENSION,
    MOST_GIB,
    MOST_SECONDS,
    loads,
    measure,
    section_of,
    table,
)
from perf.rates import machine_rates
from perf.sections import Section

BATCH_SIZES = (1024, 2048, 4096)
QUICK_BATCH_SIZES = (1024,)


def section(out: Path, *, quick: bool, show: Callable[[str], None]) -> Section:
    """Measures the losses on large classes."""
    timings = []
    for batch_size in QUICK_BATCH_SIZES if quick else BATCH_SIZES:
        found = measure(batch_size, repeats=3, seconds=1.0 if quick else 10.0, classes="quarter")
        timings += found
        show(table(found))
    largest = max(item.batch_size for item in timings)
    pairs = (largest // 4) ** 2 * largest
    note = (
        "As above, but one class holds a quarter of the batch, the others four images each. Bounds at batch 4,096: "
        f"{MOST_SECONDS} s and {MOST_GIB} GiB for each loss. {loads(timings)} Physical limit of a loss that visits "
        f"each pair of a positive and an item once, at batch {largest:,} ({pairs:,} pairs, four operations each, "
        f"beside the products): {machine_rates().limit(4 * largest**2 * DIMENSION + 4 * pairs, 16 * largest**2)}."
    )
    return section_of("large_class", "Losses, one class with a quarter of the batch", note, timings)
