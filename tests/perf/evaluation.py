"""Exact evaluation, the library, and the floor: the matrix product."""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import torch
from perf.timing import Row, Target, measure_methods, peak_of_process

from benchmark.metrics import retrieval_metrics
from benchmark.metrics.ranks import block_size

RECALL_AT = (1, 10, 100, 1000)
DIMENSION = 512
PER_CLASS = 5
FLOOR = "matrix product (floor)"
LIBRARY = "AccuracyCalculator"
OURS = "ours"
OURS_SHORT = "ours, R@1 + mAP@R"
SIZES = (2_500, 5_000, 10_000, 20_000)
QUICK_SIZES = (1_250, 2_500, 5_000)
# Stanford Online Products and iNaturalist. Time grows with the queries, memory does not.
SOP = 60_502
INATURALIST = 136_093
# items, queries
APART = ((SOP, SOP), (INATURALIST, 20_000))
QUICK_APART = ((SOP, 4_096),)
MAX_FLOORS = 1.5
MAX_GIB = 4
JUDGED_FROM = 20_000


def evaluation(quick: bool) -> Iterator[Row]:
    """Random unit rows, 512-d, five to a class, each queries all others; then our memory in
    processes that hold nothing else. ``times_faster``: than AccuracyCalculator with R@1 and mAP@R.
    ``peak_mb``: growth of the process beyond the embeddings.
    """
    threads = torch.get_num_threads()
    for items in QUICK_SIZES if quick else (*SIZES, SOP):
        for row in measure(items, items, threads, names=(FLOOR, OURS) if items == SOP else ()):
            targets = []
            if items >= JUDGED_FROM and row["method"] == OURS:
                cost = row["times_floor"]
                targets.append(Target("all metrics, cost", cost, MAX_FLOORS, "x floor"))
            if items >= JUDGED_FROM and row["method"] == OURS_SHORT:
                faster = row["times_faster"]
                targets.append(Target("R@1 and mAP@R, speed", faster, 1, f"x {LIBRARY}", True))
            yield {**row, "targets": targets}
    for items, queries in QUICK_APART if quick else APART:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            (row,) = pool.submit(measure, items, queries, threads, names=(OURS,)).result()
        memory = Target("memory beyond embeddings", row["peak_mb"] / 1024, MAX_GIB, "GiB")
        yield {**row, "method": "ours, own process", "targets": [memory]}


def measure(
    items: int, queries: int, threads: int, dim: int = DIMENSION, names: tuple[str, ...] = ()
) -> list[Row]:
    """Return a row for each method (of ``names``, if any), most of them timed twice."""
    from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator

    rows, labels = made_up(items, dim)
    sets = (rows, labels) if queries == items else (rows[:queries], labels[:queries], rows, labels)
    ours = partial(retrieval_metrics, *sets, threads=threads)
    include = ("precision_at_1", "mean_average_precision_at_r")
    library = AccuracyCalculator(include=include, k="max_bin_count")
    methods = {
        FLOOR: partial(_matrix_product, rows),
        OURS: partial(ours, recall_at=RECALL_AT),
        OURS_SHORT: partial(ours, recall_at=(1,)),
        LIBRARY: lambda: library.get_accuracy(rows, labels),
    }
    chosen = {name: methods[name] for name in names or methods}
    settings = {"floor": FLOOR, "library": LIBRARY, "repeats": 1 if names else 2}
    measured = measure_methods(chosen, peak_of_process, count_first=True, **settings)
    return [{"items": items, "queries": queries, **row} for row in measured]


def made_up(items: int, dim: int = DIMENSION) -> tuple[np.ndarray, np.ndarray]:
    """Return random unit rows (items, dim) float32 and their labels (items,)."""
    rows = np.random.default_rng(0).standard_normal((items, dim), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, np.arange(items) // PER_CLASS


def _matrix_product(embeddings: np.ndarray) -> None:
    """Compute all scores in the blocks of the metrics, and nothing from them."""
    items = len(embeddings)
    size = min(block_size(items), items)
    scores = np.empty((size, items), dtype=np.float32)
    for start in range(0, items, size):
        part = embeddings[start : start + size]
        np.matmul(part, embeddings.T, out=scores[: len(part)])
