"""Exact evaluation, the library, and the floor: the matrix product.

Random unit rows, 512-d, five to a class, each queries all others. ``times_faster``: than
AccuracyCalculator with R@1 and mAP@R. ``peak_mb``: growth of the process beyond the embeddings.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmark.metrics import retrieval_metrics
from benchmark.metrics.ranks import block_size
from perf.timing import Row, Target, measure_methods, peak_of_process

RECALL_AT = (1, 10, 100, 1000)
DIMENSION, PER_CLASS = 512, 5
FLOOR, LIBRARY = "matrix product (floor)", "AccuracyCalculator"
OURS, OURS_SHORT, OURS_APART = "ours", "ours, R@1 + mAP@R", "ours, own process"
SIZES, QUICK_SIZES = (2_500, 5_000, 10_000, 20_000), (1_250, 2_500, 5_000)
# Stanford Online Products and iNaturalist. Time grows with the queries, memory does not.
SOP, INATURALIST = 60_502, 136_093
APART, QUICK_APART = ((SOP, SOP), (INATURALIST, 20_000)), ((SOP, 4_096),)  # items, queries
MAX_FLOORS, MAX_GIB, JUDGED_FROM = 1.5, 4, 20_000


def rows(quick: bool) -> Iterator[Row]:
    """Measure several sizes, then our memory in processes that hold nothing else."""
    for items in QUICK_SIZES if quick else (*SIZES, SOP):
        yield from measure(items, names=(FLOOR, OURS) if items == SOP else ())
    for items, queries in QUICK_APART if quick else APART:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            row = pool.submit(_apart, items, queries, torch.get_num_threads()).result()
        memory = Target("memory beyond embeddings", row["peak_mb"] / 1024, MAX_GIB, "GiB")
        yield {**row, "targets": [memory]}


def measure(items: int, dim: int = DIMENSION, names: tuple[str, ...] = ()) -> Iterator[Row]:
    """Give a row for each method (of ``names``, if any) at one size."""
    methods = {
        name: call for name, call in _methods(*made_up(items, dim)) if not names or name in names
    }
    settings = {"floor": FLOOR, "library": LIBRARY, "count_first": True}
    for row in measure_methods(methods, peak_of_process, repeats=1 if names else 2, **settings):
        targets = []
        if items >= JUDGED_FROM and row["method"] == OURS:
            cost = row["times_floor"]
            targets.append(Target("all metrics, cost", cost, MAX_FLOORS, "x floor"))
        if items >= JUDGED_FROM and row["method"] == OURS_SHORT:
            faster = row["times_faster"]
            targets.append(Target("R@1 and mAP@R, speed", faster, 1, f"x {LIBRARY}", True))
        yield {"items": items, "queries": items, **row, "targets": targets}


def made_up(items: int, dim: int = DIMENSION) -> tuple[np.ndarray, np.ndarray]:
    """Return random unit rows (items, dim) float32 and their labels (items,)."""
    rows = np.random.default_rng(0).standard_normal((items, dim), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, np.arange(items) // PER_CLASS


def _apart(items: int, queries: int, threads: int) -> Row:
    torch.set_num_threads(threads)
    rows, labels = made_up(items)
    gallery = () if queries >= items else (rows, labels)
    evaluate = partial(retrieval_metrics, rows[:queries], labels[:queries], *gallery)
    call = partial(evaluate, recall_at=RECALL_AT, threads=threads)
    settings = {"floor": OURS_APART, "repeats": 1, "count_first": True}
    (row,) = measure_methods({OURS_APART: call}, peak_of_process, **settings)
    return {"items": items, "queries": queries, **row, "times_floor": None}


def _methods(embeddings: np.ndarray, labels: np.ndarray) -> Iterator[tuple[str, Callable[[], Any]]]:
    from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator

    ours = partial(retrieval_metrics, embeddings, labels, threads=torch.get_num_threads())
    yield FLOOR, partial(_matrix_product, embeddings)
    yield OURS, partial(ours, recall_at=RECALL_AT)
    yield OURS_SHORT, partial(ours, recall_at=(1,))
    names = ("precision_at_1", "mean_average_precision_at_r")
    library = AccuracyCalculator(include=names, k="max_bin_count")
    yield LIBRARY, lambda: library.get_accuracy(embeddings, labels)


def _matrix_product(embeddings: np.ndarray) -> None:
    """Compute all scores in the blocks of the metrics, and nothing from them."""
    items = len(embeddings)
    size = min(block_size(items), items)
    scores = np.empty((size, items), dtype=np.float32)
    for start in range(0, items, size):
        part = embeddings[start : start + size]
        np.matmul(part, embeddings.T, out=scores[: len(part)])
