"""Exact retrieval metrics on numpy arrays; importing them imports neither torch nor faiss."""

from benchmark.metrics.landmarks import landmark_map, landmark_scores
from benchmark.metrics.postprocessing import expand_queries, learn_whitening
from benchmark.metrics.retrieval import evaluate_retrieval, retrieval_metrics
from benchmark.metrics.search import nearest_neighbours

__all__ = [
    "evaluate_retrieval",
    "expand_queries",
    "landmark_map",
    "landmark_scores",
    "learn_whitening",
    "nearest_neighbours",
    "retrieval_metrics",
]
