"""Exact retrieval metrics on numpy arrays; importing them imports neither torch nor faiss."""

from benchmark.metrics.metric import METRICS
from benchmark.metrics.retrieval import (
    evaluate_retrieval,
    landmark_scores,
    retrieval_metrics,
)
from benchmark.metrics.scoring import score
from benchmark.metrics.search import expand_queries, learn_whitening, nearest_neighbours

__all__ = [
    "METRICS",
    "evaluate_retrieval",
    "expand_queries",
    "landmark_scores",
    "learn_whitening",
    "nearest_neighbours",
    "retrieval_metrics",
    "score",
]
