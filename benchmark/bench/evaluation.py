"""Time and memory of exact evaluation against its alternatives and the floor, the matrix product alone."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmark.bench.figures import draw_evaluation
from benchmark.bench.memory import peak_of_process
from benchmark.bench.sections import Row, Section, load
from benchmark.metrics import retrieval_metrics
from benchmark.metrics.ranks import block_size
from benchmark.metrics.search import flat_index
from benchmark.plots.drawing import save

RECALL_AT = (1, 10, 100, 1000)
FLOOR = "matrix product (floor)"
OURS = "ours"
SIZES, QUICK_SIZES = (2_500, 5_000, 10_000, 20_000), (1_250, 2_500, 5_000)
# Stanford Online Products and iNaturalist as evaluated: too large for the alternatives that keep whole rankings.
LARGE_SIZES = (60_502, 136_093)
# Beyond this size the library's full mAP, which keeps whole rankings, needs more memory than usual machines have.
CALCULATOR_LIMIT = 30_000
PER_CLASS = 5


def section(out: Path, *, quick: bool, show: Callable[[str], None]) -> Section:
    """Measures evaluation at several sizes; draws ``evaluation_time`` into ``out``."""
    begin = load()
    rows = measure_evaluation(QUICK_SIZES if quick else SIZES, repeats=3, show=show)
    if not quick:
        rows += measure_evaluation(LARGE_SIZES, repeats=1, show=show, names=(FLOOR, OURS))
    save(draw_evaluation(rows, OURS), Path(out), "evaluation_time")
    exponents = ", ".join(f"{name} {value:.2f}" for name, value in growth(rows).items())
    note = (
        f"Random unit rows, {rows[0]['dim']}-d, {PER_CLASS} to a class; each item queries all others; "
        f"{rows[0]['threads']} threads; medians of interleaved repeats, one from {min(LARGE_SIZES):,} items on. "
        "`peak_mb`: growth of the process beyond the embeddings. AccuracyCalculator is left out above "
        f"{CALCULATOR_LIMIT:,} items: at {min(LARGE_SIZES):,} its full mAP would keep "
        f"{12e-9 * min(LARGE_SIZES) ** 2:.0f} GB of neighbours and distances. Growth with the number of items, fitted "
        f"exponents: {exponents}. Load {max(begin, load()):.1f}."
    )
    shown = ("method", "metrics", "seconds", "times_floor", "peak_mb", "repeats")
    return Section("evaluation", "Evaluation", note, rows, "items", shown)


def measure_evaluation(
    sizes: Sequence[int],
    dim: int = 512,
    repeats: int = 3,
    *,
    show: Callable[[str], None] = lambda text: None,
    names: Sequence[str] | None = None,
) -> list[Row]:
    """Returns a row per method (of ``names``, or all) and size.

    Methods take turns, so that a busy spell of the machine meets all of them. A method that is not installed or
    cannot hold the size in memory has no row.
    """
    rows = []
    for items in sizes:
        embeddings, labels = _made_up(items, dim)
        methods = {
            name: found for name, found in _methods(embeddings, labels).items() if names is None or name in names
        }
        seconds: dict[str, list[float]] = {name: [] for name in methods}
        peaks: dict[str, int | None] = {}
        for turn in range(repeats):
            for name, (_, run) in methods.items():
                start = time.perf_counter()
                found = peak_of_process(run)
                seconds[name].append(time.perf_counter() - start)
                if turn == 0:
                    peaks[name] = found
        medians = {name: statistics.median(values) for name, values in seconds.items()}
        for name, (metrics, _) in methods.items():
            rows.append(
                {
                    "method": name,
                    "items": items,
                    "dim": dim,
                    "metrics": metrics,
                    "seconds": medians[name],
                    "least": min(seconds[name]),
                    "most": max(seconds[name]),
                    "times_floor": medians[name] / medians[FLOOR],
                    "peak_mb": None if peaks[name] is None else peaks[name] / 2**20,
                    "repeats": repeats,
                    "threads": torch.get_num_threads(),
                }
            )
            show(f"  {items:>8,} items  {name:<26}{medians[name]:9.2f} s  {rows[-1]['times_floor']:6.2f} x floor")
    return rows


def growth(rows: Sequence[Row]) -> dict[str, float]:
    """Returns for each method with three sizes or more the exponent b of seconds ~ items ** b, by least squares on
    logarithms."""
    found = {}
    for name in dict.fromkeys(row["method"] for row in rows):
        points = [(row["items"], row["seconds"]) for row in rows if row["method"] == name]
        if len(points) >= 3:
            sizes, seconds = np.log(np.array(points, dtype=float)).T
            found[name] = float(np.polyfit(sizes, seconds, 1)[0])
    return found


def _methods(embeddings: np.ndarray, labels: np.ndarray) -> dict[str, tuple[str, Callable[[], Any]]]:
    """Returns {method: (what it computes, call)}."""
    items, threads = len(embeddings), torch.get_num_threads()
    methods = {
        FLOOR: ("none", lambda: _matrix_product(embeddings)),
        OURS: (
            "R@1-1000, mAP@R, mAP",
            lambda: retrieval_metrics(embeddings, labels, recall_at=RECALL_AT, threads=threads),
        ),
        "faiss, 6 neighbours": ("none", lambda: flat_index(embeddings).search(embeddings, min(6, items))),
        "faiss, 1001 neighbours": ("none", lambda: flat_index(embeddings).search(embeddings, min(1001, items))),
    }
    try:
        from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
    except ImportError:
        return methods
    short = AccuracyCalculator(include=("precision_at_1", "mean_average_precision_at_r"), k="max_bin_count")
    methods["AccuracyCalculator"] = ("R@1, mAP@R", lambda: short.get_accuracy(embeddings, labels))
    if items <= CALCULATOR_LIMIT:
        full = AccuracyCalculator(include=("precision_at_1", "mean_average_precision"), k=None)
        methods["AccuracyCalculator, full"] = ("R@1, mAP", lambda: full.get_accuracy(embeddings, labels))
    return methods


def _matrix_product(embeddings: np.ndarray) -> None:
    """Computes all scores in the blocks that the metrics use, and nothing from them."""
    items = len(embeddings)
    size = min(block_size(items), items)
    scores = np.empty((size, items), dtype=np.float32)
    for start in range(0, items, size):
        part = embeddings[start : start + size]
        np.matmul(part, embeddings.T, out=scores[: len(part)])


def _made_up(items: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    rows = np.random.default_rng(0).standard_normal((items, dim), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, np.arange(items) // PER_CLASS
