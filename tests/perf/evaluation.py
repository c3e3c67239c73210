"""Time and memory of exact evaluation, alternatives, and the floor: the matrix product."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator

from benchmark.metrics import retrieval_metrics
from benchmark.metrics.ranks import block_size
from benchmark.metrics.search import flat_index
from benchmark.report.drawing.drawing import save
from perf.figures import draw_evaluation
from perf.interleave import measure_methods
from perf.memory import peak_of_process
from perf.rates import machine_rates
from perf.sections import Measurement, Row, Section, Target

RECALL_AT = (1, 10, 100, 1000)
DIMENSION, PER_CLASS = 512, 5
FLOOR = "matrix product (floor)"
OURS, OURS_SHORT, OURS_APART = "ours", "ours, R@1 + mAP@R", "ours, own process"
LIBRARY = "AccuracyCalculator"
ALL_METRICS, SHORT_METRICS = "R@1-1000, mAP@R, mAP", "R@1, mAP@R"
SIZES, QUICK_SIZES = (2_500, 5_000, 10_000, 20_000), (1_250, 2_500, 5_000)
# Beyond this size the library's full mAP, which keeps whole rankings, needs too much memory.
LIBRARY_LIMIT = 10_000
# Stanford Online Products and iNaturalist, in a process each. Time grows with the queries, memory
# does not: all of SOP's are made, unless it has to be quick, and some of iNaturalist's.
SOP, INATURALIST = 60_502, 136_093
APART, QUICK_APART = ((SOP, SOP), (INATURALIST, 20_000)), ((SOP, 4_096),)  # items, queries
MAX_FLOORS, MAX_GIB = 1.5, 4
JUDGED_FROM = 20_000  # items


def section(out: Path, *, quick: bool, show: Callable[[str], None]) -> Section:
    """Measure evaluation at several sizes; draw ``evaluation_time`` into ``out``."""
    rows = measure_evaluation(QUICK_SIZES if quick else SIZES, repeats=2, show=show)
    if not quick:
        rows += measure_evaluation([SOP], repeats=1, show=show, names=(FLOOR, OURS))
    exponents = growth(rows)
    save(draw_evaluation(pd.DataFrame(rows), (OURS, OURS_SHORT), exponents), out, "evaluation_time")
    largest = max(row["items"] for row in rows)
    for items, queries in QUICK_APART if quick else APART:
        rows.append(measured_apart(items, queries))
        show(f"  {items:>8,} items  {OURS_APART:<26}{rows[-1]['milliseconds']:9.0f} ms")
    rows.sort(key=lambda row: row["items"])
    powers = ", ".join(f"{name} {value:.2f}" for name, value in exponents.items())
    loads = [row["load"] for row in rows]
    note = (
        f"Random unit rows, {DIMENSION}-d, {PER_CLASS} to a class; each of `queries` queries all "
        f"others. `times_faster`: than {LIBRARY} with R@1 and mAP@R. `peak_mb`: growth of the "
        f"process beyond the embeddings. Time grows as a power of the number of items: {powers}. "
        f"Load {min(loads)} to {max(loads)}. Physical limit at {largest:,} items, scores written "
        f"and read once: {machine_rates().limit(2 * largest**2 * DIMENSION, 8 * largest**2)}."
    )
    measurements = [Measurement(row, targets_of(row)) for row in rows]
    return Section("evaluation", "Evaluation", note, measurements, "items")


def targets_of(row: Row) -> list[Target]:
    """Return the bounds of a row."""
    where, large = f"{row['items']:,} items", row["items"] >= JUDGED_FROM
    if row["method"] == OURS and large:
        cost = row["times_floor"]
        return [Target("all metrics, cost", cost, MAX_FLOORS, "x floor", where=where)]
    if row["method"] == OURS_SHORT and large and row["times_faster"]:
        faster, unit = row["times_faster"], f"x {LIBRARY}"
        return [Target("R@1 and mAP@R, speed", faster, 1, unit, at_least=True, where=where)]
    if row["method"] == OURS_APART and row["peak_mb"] is not None:
        what, size = "memory beyond embeddings", row["peak_mb"] / 1024
        return [Target(what, size, MAX_GIB, "GiB", where=where)]
    return []


def measure_evaluation(
    sizes: Sequence[int],
    dim: int = DIMENSION,
    repeats: int = 3,
    *,
    show: Callable[[str], None] = lambda text: None,
    names: Sequence[str] = (),
) -> list[Row]:
    """Return a row for each method (of ``names``, if any) and size."""
    rows = []
    for items in sizes:
        methods = {
            name: (metrics, call)
            for name, metrics, call in _methods(*made_up(items, dim))
            if name in names or not names
        }
        measured = measure_methods(
            {name: call for name, (_, call) in methods.items()},
            peak_of_process,
            floor=FLOOR,
            library=LIBRARY,
            repeats=repeats,
            count_first=True,
        )
        for row in measured:
            metrics, _ = methods[row["method"]]
            rows.append({"items": items, "queries": items, "metrics": metrics, **row})
            show(
                f"  {items:>8,} items  {row['method']:<26}{row['milliseconds']:9.0f} ms  "
                f"{row['times_floor']:6.2f} x floor"
            )
    return rows


def made_up(items: int, dim: int = DIMENSION) -> tuple[np.ndarray, np.ndarray]:
    """Return random unit rows (items, dim) float32 and their labels (items,)."""
    rows = np.random.default_rng(0).standard_normal((items, dim), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, np.arange(items) // PER_CLASS


def measured_apart(items: int, queries: int) -> Row:
    """Return the row of all our metrics in a process that holds nothing else.

    With fewer queries than items, the first of the items are ranked against all of them.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        (row,) = pool.submit(_measure_once, items, queries, torch.get_num_threads()).result()
    sizes = {"items": items, "queries": queries, "metrics": ALL_METRICS}
    return {**sizes, **row, "times_floor": None}


def _measure_once(items: int, queries: int, threads: int) -> list[Row]:
    torch.set_num_threads(threads)
    rows, labels = made_up(items)
    gallery = () if queries >= items else (rows, labels)
    evaluate = partial(retrieval_metrics, rows[:queries], labels[:queries], *gallery)
    call = partial(evaluate, recall_at=RECALL_AT, threads=threads)
    settings = {"floor": OURS_APART, "library": LIBRARY, "repeats": 1, "count_first": True}
    return measure_methods({OURS_APART: call}, peak_of_process, **settings)


def growth(rows: Sequence[Row]) -> dict[str, float]:
    """Return, for methods with three sizes or more, the exponent b of time ~ items ** b."""
    exponents = {}
    for name, points in pd.DataFrame(rows).groupby("method", sort=False):
        if len(points) >= 3:
            logs = np.log(points[["items", "milliseconds"]].to_numpy(float)).T
            exponents[str(name)] = float(np.polyfit(*logs, 1)[0])
    return exponents


def _methods(
    embeddings: np.ndarray, labels: np.ndarray
) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Yield (name, metrics that it computes, call) of each method."""
    items = len(embeddings)
    ours = partial(retrieval_metrics, embeddings, labels, threads=torch.get_num_threads())
    yield FLOOR, "none", partial(_matrix_product, embeddings)
    yield OURS, ALL_METRICS, partial(ours, recall_at=RECALL_AT)
    yield OURS_SHORT, SHORT_METRICS, partial(ours, recall_at=(1,))
    for neighbours in (6, 1001):
        count = min(neighbours, items)
        yield (
            f"faiss, {neighbours} neighbours",
            "none",
            lambda count=count: flat_index(embeddings).search(embeddings, count),
        )
    names = ("precision_at_1", "mean_average_precision_at_r")
    short = AccuracyCalculator(include=names, k="max_bin_count")
    yield LIBRARY, SHORT_METRICS, lambda: short.get_accuracy(embeddings, labels)
    if items <= LIBRARY_LIMIT:
        full = AccuracyCalculator(include=("precision_at_1", "mean_average_precision"), k=None)
        yield f"{LIBRARY}, full", "R@1, mAP", lambda: full.get_accuracy(embeddings, labels)


def _matrix_product(embeddings: np.ndarray) -> None:
    """Compute all scores in the blocks of the metrics, and nothing from them."""
    items = len(embeddings)
    size = min(block_size(items), items)
    scores = np.empty((size, items), dtype=np.float32)
    for start in range(0, items, size):
        part = embeddings[start : start + size]
        np.matmul(part, embeddings.T, out=scores[: len(part)])
