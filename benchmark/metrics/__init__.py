"""Exact retrieval metrics on numpy arrays. Importing this package imports neither torch nor faiss."""

from __future__ import annotations

from benchmark.metrics.names import METRICS, check_metric, display_name, metric_of
from benchmark.metrics.retrieval import Retrieval, evaluate_retrieval, retrieval_metrics
from benchmark.metrics.search import nearest_neighbours

__all__ = [
    "METRICS",
    "Retrieval",
    "check_metric",
    "display_name",
    "evaluate_retrieval",
    "metric_of",
    "nearest_neighbours",
    "retrieval_metrics",
]
