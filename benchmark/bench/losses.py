"""Forward and backward time of every score loss, of the alternatives and of the floor, in one process."""

from __future__ import annotations

import csv
import io
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmark.bench import alternatives
from benchmark.files import write_text
from benchmark.losses import create_loss

OURS = ("smooth_ap", "sup_ap", "roadmap", "fast_ap", "softbin_ap", "blackbox_ap", "calibration")
FLOOR = "score matrix (floor)"
RIVAL = "PML SmoothAP"
# methods whose tensors grow with the cube of the batch are not asked for more than this
LARGEST_CUBIC = 512
BATCH_SIZES = (32, 64, 128, 256, 384, 512, 1024, 2048, 4096)
QUICK_BATCH_SIZES = (128, 384, 1024)
DIMENSION, PER_CLASS = 512, 4


@dataclass(frozen=True)
class Timing:
    """Median time of one forward + backward pass."""

    batch_size: int
    method: str
    milliseconds: float
    repeats: int
    times_floor: float
    faster_than_rival: float | None  # how many times faster than RIVAL, where that was measured
    threads: int


def measure(batch_size: int, *, repeats: int, seconds: float) -> list[Timing]:
    """Returns timings at one batch size: 512-d unit rows, 4 per class, float32.

    Repeats are interleaved, so that a disturbance of the machine meets all methods alike; a method that has used
    up ``seconds`` is not repeated further (each runs at least twice, the first time unmeasured).
    """
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(batch_size, DIMENSION, generator=generator)
    embeddings = torch.nn.functional.normalize(rows, dim=1).requires_grad_()
    labels = torch.arange(batch_size) // PER_CLASS
    steps = dict(_methods(batch_size))
    times: dict[str, list[float]] = {name: [] for name in steps}
    for name, step in steps.items():
        _time(step, embeddings, labels)
        times[name].append(_time(step, embeddings, labels))
    for _ in range(repeats - 1):
        for name, step in steps.items():
            if sum(times[name]) < seconds:
                times[name].append(_time(step, embeddings, labels))
    medians = {name: 1000 * statistics.median(values) for name, values in times.items()}
    rival = medians.get(RIVAL)
    return [
        Timing(
            batch_size,
            name,
            medians[name],
            len(times[name]),
            medians[name] / medians[FLOOR],
            None if rival is None else rival / medians[name],
            torch.get_num_threads(),
        )
        for name in steps
    ]


def run(batch_sizes: Iterable[int], *, repeats: int, seconds: float, out: Path, show: Callable[[str], None]) -> Path:
    """Measures all batch sizes, shows a table of each as soon as it is there, and returns the CSV's path."""
    timings: list[Timing] = []
    for batch_size in batch_sizes:
        found = measure(batch_size, repeats=repeats, seconds=seconds)
        timings += found
        show(table(found))
        write_text(out, _csv(timings))
    return out


def table(timings: list[Timing]) -> str:
    """Returns the timings of one batch size as lines of text, with ratios."""
    head = timings[0]
    lines = [
        f"batch {head.batch_size}, {DIMENSION}-d, {PER_CLASS} per class, forward + backward, {head.threads} thread(s)",
        f"  {'method':<22}{'ms':>10}{'x floor':>10}{'x faster than ' + RIVAL:>28}",
    ]
    for item in timings:
        faster = "" if item.faster_than_rival is None else f"{item.faster_than_rival:.1f}"
        lines.append(f"  {item.method:<22}{item.milliseconds:>10.2f}{item.times_floor:>10.2f}{faster:>28}")
    return "\n".join(lines)


def _methods(batch_size: int) -> Iterable[tuple[str, alternatives.Step]]:
    yield FLOOR, alternatives.floor(batch_size)
    for name in OURS:
        yield name, _ours(name)
    yield "PML FastAP", alternatives.library("FastAPLoss")
    if batch_size <= LARGEST_CUBIC:
        yield RIVAL, alternatives.library("SmoothAPLoss")
        yield "dense SmoothAP", alternatives.dense_smooth_ap
        yield "dense SupAP", alternatives.dense_sup_ap


def _ours(name: str) -> alternatives.Step:
    loss, generator = create_loss(name), torch.Generator().manual_seed(0)
    return lambda embeddings, labels: loss(embeddings, labels, generator=generator)


def _time(step: alternatives.Step, embeddings: torch.Tensor, labels: torch.Tensor) -> float:
    embeddings.grad = None
    start = time.perf_counter()
    step(embeddings, labels).backward()
    return time.perf_counter() - start


def _csv(timings: list[Timing]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fieldnames=list(Timing.__dataclass_fields__), lineterminator="\n")
    writer.writeheader()
    writer.writerows(vars(item) for item in timings)
    return stream.getvalue()
