"""Exact retrieval metrics on numpy arrays; importing them imports neither torch nor faiss."""

from benchmark.metrics.expansion import expand_queries
from benchmark.metrics.landmarks import landmark_map, landmark_scores
from benchmark.metrics.retrieval import evaluate_retrieval, retrieval_metrics
from benchmark.metrics.search import nearest_neighbours
from benchmark.metrics.whitening import learn_whitening

__all__ = [
    "evaluate_retrieval",
    "expand_queries",
    "landmark_map",
    "landmark_scores",
    "learn_whitening",
    "nearest_neighbours",
    "retrieval_metrics",
]
