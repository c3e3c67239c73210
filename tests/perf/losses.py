"""Forward and backward time and peak memory of the score losses, the alternatives and the floor, in one process."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from benchmark.losses import create_loss
from benchmark.report.figures.drawing import save
from perf import alternatives
from perf.figures import draw_losses
from perf.memory import peak_of_tensors
from perf.rates import machine_rates
from perf.sections import Row, Section, load
from perf.targets import Target, judgement
from perf.turns import medians, seconds_of, take_turns

OURS = ("smooth_ap", "sup_ap", "roadmap", "fast_ap", "softbin_ap", "blackbox_ap", "calibration")
FLOOR = "score matrix (floor)"
RIVAL = "PML SmoothAP"
# Five tensors of batch^3 numbers are alive at once in the dense formulas: 2.5 GiB at this batch size, 20 at twice it.
LARGEST_CUBIC = 512
BATCH_SIZES = (32, 64, 128, 256, 384, 512, 1024, 2048, 4096)
QUICK_BATCH_SIZES = (128, 384, 1024)
DIMENSION, PER_CLASS = 512, 4
SHOWN = (
    "method",
    "milliseconds",
    "quartiles",
    "times_floor",
    "faster_than_rival",
    "peak_mb",
    "repeats",
)
SHOWN += ("target", "met")
# Bounds: multiples of the floor from JUDGED_FROM on, times faster than RIVAL at JUDGED_FROM, cost at the largest batch.
FLOOR_BOUNDS = {
    "smooth_ap": 3,
    "sup_ap": 3,
    "roadmap": 4,
    "fast_ap": 4,
    "softbin_ap": 4,
    "blackbox_ap": 6,
}
RIVAL_BOUNDS = {"smooth_ap": 150, "sup_ap": 100}
JUDGED_FROM, LARGEST = 384, 4096
MOST_SECONDS, MOST_GIB = 10, 4


@dataclass(frozen=True)
class Timing:
    """One forward + backward pass: median time with quartiles, and the most memory its tensors took at once."""

    batch_size: int
    classes: str  # "balanced" or "quarter"
    method: str
    milliseconds: float
    quartiles: str
    repeats: int
    times_floor: float
    faster_than_rival: float | None  # how many times faster than RIVAL, where that was measured
    peak_mb: float
    threads: int
    load: float


def section(out: Path, *, quick: bool, show: Callable[[str], None]) -> Section:
    """Measures balanced batches of many sizes; draws ``loss_time`` into ``out``."""
    return measured_section(None, out, quick=quick, show=show)


def measured_section(
    sizes: Iterable[int] | None, out: Path, *, quick: bool, show: Callable[[str], None]
) -> Section:
    """Returns the section of balanced batches of ``sizes`` (None: the usual), showing a table of each at once."""
    repeats, seconds = (5, 1.0) if quick else (15, 4.0)
    sizes = sizes or (QUICK_BATCH_SIZES if quick else BATCH_SIZES)
    timings: list[Timing] = []
    for batch_size in sizes:
        found = measure(batch_size, repeats=repeats, seconds=seconds)
        timings += found
        show(table(found))
    save(draw_losses(timings, OURS), Path(out), "loss_time")
    largest = max(item.batch_size for item in timings)
    limit = machine_rates().limit(4 * largest**2 * DIMENSION, 16 * largest**2)
    note = (
        f"{DIMENSION}-d float32 rows, {PER_CLASS} per class, {timings[0].threads} threads, one process; medians of "
        f"interleaved repeats. `times_floor`: multiples of the score matrix and its backward pass. "
        f"`faster_than_rival`: how many times faster than {RIVAL}. `peak_mb`: tensors alive at once beyond the inputs. "
        f"{loads(timings)} "
        f"Methods with batch^3 numbers are left out above batch {LARGEST_CUBIC}: five tensors of "
        f"{4 * (2 * LARGEST_CUBIC) ** 3 / 2**30:.0f} GiB each would be alive at {2 * LARGEST_CUBIC}. "
        f"Physical limit at batch {largest:,}, with two matrix products and with scores and their gradient written "
        f"and read once: {limit}."
    )
    return section_of("losses", "Losses", note, timings)


def section_of(name: str, title: str, note: str, timings: list[Timing]) -> Section:
    """Returns the section with these timings and what becomes of their targets."""
    rows: list[Row] = []
    targets: list[Target] = []
    for item in timings:
        found = targets_of(item)
        targets += found
        rows.append({**asdict(item), **judgement(found)})
    targets.sort(key=lambda target: target.what)
    return Section(name, title, note, rows, "batch_size", SHOWN, tuple(targets))


def targets_of(item: Timing) -> list[Target]:
    """Returns the bounds that this timing is to keep."""
    bound, where, found = FLOOR_BOUNDS.get(item.method), f"batch {item.batch_size}", []
    if bound is None:
        return []
    if item.classes == "balanced" and item.batch_size >= JUDGED_FROM:
        found.append(
            Target(f"{item.method}, cost", item.times_floor, bound, "x floor", where=where)
        )
    rival = RIVAL_BOUNDS.get(item.method)
    if rival and item.batch_size == JUDGED_FROM and item.faster_than_rival:
        faster = item.faster_than_rival
        found.append(
            Target(f"{item.method}, speed", faster, rival, f"x {RIVAL}", least=True, where=where)
        )
    if item.batch_size == LARGEST:
        what, where = f"every AP loss, batch {LARGEST:,}, {item.classes} classes", item.method
        found.append(
            Target(f"{what}, time", item.milliseconds / 1000, MOST_SECONDS, "s", where=where)
        )
        found.append(Target(f"{what}, memory", item.peak_mb / 1024, MOST_GIB, "GiB", where=where))
    return found


def loads(timings: list[Timing]) -> str:
    """Returns a sentence on how busy the machine was."""
    values = [item.load for item in timings]
    return f"Load of the machine {min(values):.1f} to {max(values):.1f}."


def measure(
    batch_size: int, *, repeats: int, seconds: float, classes: str = "balanced"
) -> list[Timing]:
    """Returns timings at one batch size: 512-d unit rows, float32.

    ``classes``: "balanced", four images a class, or "quarter", one class with a quarter of the batch and four
    images of each other. Repeats are interleaved, so that a disturbance of the machine meets all methods alike;
    a method that has used up ``seconds`` is not repeated further (each runs at least twice, the first time
    unmeasured by the clock, for its memory).
    """
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(batch_size, DIMENSION, generator=generator)
    embeddings = torch.nn.functional.normalize(rows, dim=1).requires_grad_()
    labels = torch.arange(batch_size) // PER_CLASS
    if classes == "quarter":
        labels[: batch_size // 4] = 0
    steps = dict(_methods(batch_size, classes))
    begin = load()
    peaks = {name: _peak(step, embeddings, labels) for name, step in steps.items()}
    times = take_turns(
        {
            name: lambda step=step: 1000 * _time(step, embeddings, labels)
            for name, step in steps.items()
        },
        repeats,
        seconds,
    )
    typical = medians(times)
    rival = typical.get(RIVAL)
    return [
        Timing(
            batch_size,
            classes,
            name,
            typical[name],
            _quartiles(times[name]),
            len(times[name]),
            typical[name] / typical[FLOOR],
            None if rival is None else rival / typical[name],
            peaks[name] / 2**20,
            torch.get_num_threads(),
            round(max(begin, load()), 2),
        )
        for name in steps
    ]


def table(timings: list[Timing]) -> str:
    """Returns the timings of one batch size as lines of text, with ratios."""
    head = timings[0]
    lines = [
        f"batch {head.batch_size}, {DIMENSION}-d, {head.classes} classes, forward + backward, {head.threads} threads, "
        f"load {head.load}",
        f"  {'method':<22}{'ms':>10}{'x floor':>10}{'x faster than ' + RIVAL:>28}{'peak MB':>10}",
    ]
    for item in timings:
        faster = "" if item.faster_than_rival is None else f"{item.faster_than_rival:.1f}"
        numbers = (
            f"{item.milliseconds:>10.2f}{item.times_floor:>10.2f}{faster:>28}{item.peak_mb:>10.1f}"
        )
        lines.append(f"  {item.method:<22}{numbers}")
    return "\n".join(lines)


def _methods(batch_size: int, classes: str) -> Iterable[tuple[str, alternatives.Step]]:
    yield FLOOR, alternatives.floor(batch_size)
    for name in OURS:
        yield name, _ours(name)
    yield "PML FastAP", alternatives.library("FastAPLoss")
    if (
        batch_size <= LARGEST_CUBIC and classes == "balanced"
    ):  # the library's SmoothAP wants equal classes
        yield RIVAL, alternatives.library("SmoothAPLoss")
        yield "dense SmoothAP", alternatives.dense_smooth_ap
        yield "dense SupAP", alternatives.dense_sup_ap


def _ours(name: str) -> alternatives.Step:
    loss, generator = create_loss(name), torch.Generator().manual_seed(0)
    return lambda embeddings, labels: loss(embeddings, labels, generator=generator)


def _time(step: alternatives.Step, embeddings: Tensor, labels: Tensor) -> float:
    embeddings.grad = None
    return seconds_of(lambda: step(embeddings, labels).backward())


def _peak(step: alternatives.Step, embeddings: Tensor, labels: Tensor) -> int:
    embeddings.grad = None
    return peak_of_tensors(lambda: step(embeddings, labels).backward())


def _quartiles(values: list[float]) -> str:
    if len(values) < 2:
        return "one run"
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{low:.4g} to {high:.4g}"
