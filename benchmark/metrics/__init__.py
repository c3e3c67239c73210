"""Exact retrieval metrics on numpy arrays; importing them imports neither torch nor faiss."""

from benchmark.metrics.expansion import expand_queries
from benchmark.metrics.landmarks import landmark_map, landmark_scores
from benchmark.metrics.names import METRICS, check_metric, display_name, metric_of
from benchmark.metrics.retrieval import Retrieval, evaluate_retrieval, retrieval_metrics
from benchmark.metrics.search import nearest_neighbours
from benchmark.metrics.whitening import Whitening, learn_whitening

__all__ = [
    "METRICS",
    "Retrieval",
    "Whitening",
    "check_metric",
    "display_name",
    "evaluate_retrieval",
    "expand_queries",
    "landmark_map",
    "landmark_scores",
    "learn_whitening",
    "metric_of",
    "nearest_neighbours",
    "retrieval_metrics",
]
