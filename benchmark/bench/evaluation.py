"""Time of exact evaluation against its alternatives and against the floor, the matrix product alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmark.metrics import retrieval_metrics
from benchmark.metrics.ranks import block_size
from benchmark.metrics.search import flat_index

RECALL_AT = (1, 10, 100, 1000)
FLOOR = "matrix product"
# Beyond this size the library's full mAP, which keeps whole rankings, needs more memory than usual machines have.
CALCULATOR_LIMIT = 30_000


def measure_evaluation(
    sizes: Sequence[int], dim: int = 512, repeats: int = 3, *, per_class: int = 5
) -> list[dict[str, Any]]:
    """Returns a row per method and size: ``method, items, dim, metrics, seconds, ratio_to_floor``.

    Each of ``sizes`` random unit vectors queries all the others, ``per_class`` to a class. ``seconds`` is
    the best of ``repeats``; methods take turns, so that a busy spell of the machine meets all of them. A
    method that is not installed or cannot hold the size in memory has no row.
    """
    rows = []
    for items in sizes:
        embeddings, labels = _made_up(items, dim, per_class)
        methods = _methods(embeddings, labels)
        seconds = {name: np.inf for name in methods}
        for _ in range(repeats):
            for name, (_, run) in methods.items():
                start = time.perf_counter()
                run()
                seconds[name] = min(seconds[name], time.perf_counter() - start)
        for name, (metrics, _) in methods.items():
            rows.append(
                {
                    "method": name,
                    "items": items,
                    "dim": dim,
                    "metrics": metrics,
                    "seconds": seconds[name],
                    "ratio_to_floor": seconds[name] / seconds[FLOOR],
                }
            )
    return rows


def _methods(embeddings: np.ndarray, labels: np.ndarray) -> dict[str, tuple[str, Callable[[], Any]]]:
    """Returns {method: (what it computes, call)}."""
    items = len(embeddings)
    methods = {
        FLOOR: ("none", lambda: _matrix_product(embeddings)),
        "ours": ("R@1-1000, mAP@R, mAP", lambda: retrieval_metrics(embeddings, labels, recall_at=RECALL_AT)),
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


def _made_up(items: int, dim: int, per_class: int) -> tuple[np.ndarray, np.ndarray]:
    rows = np.random.default_rng(0).standard_normal((items, dim), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, np.arange(items) // per_class
