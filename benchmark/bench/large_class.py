"""Losses on a batch in which one class holds a quarter of the images: where the cost of pairs would explode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from benchmark.bench.losses import measure, table
from benchmark.bench.sections import Section

BATCH_SIZES = (1024, 2048, 4096)
QUICK_BATCH_SIZES = (1024,)
SHOWN = ("method", "milliseconds", "quartiles", "times_floor", "peak_mb", "repeats")


def section(out: Path, *, quick: bool, show: Callable[[str], None]) -> Section:
    """Measures the losses on large classes."""
    timings = []
    for batch_size in QUICK_BATCH_SIZES if quick else BATCH_SIZES:
        found = measure(batch_size, repeats=3, seconds=1.5 if quick else 20.0, classes="quarter")
        timings += found
        show(table(found))
    note = (
        "As above, but one class holds a quarter of the batch, the others four images each. Bounds at batch 4,096: "
        f"10 s and 4 GiB for each loss. Load {min(item.load for item in timings):.1f} to "
        f"{max(item.load for item in timings):.1f}."
    )
    rows = [asdict(item) for item in timings]
    return Section("large_class", "Losses, one class with a quarter of the batch", note, rows, "batch_size", SHOWN)
