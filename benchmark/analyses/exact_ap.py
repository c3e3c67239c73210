"""Average precision by counting, for the scores of a batch or of one query."""

import numpy as np


def average_precision(positive: np.ndarray, negative: np.ndarray) -> float:
    """Return the AP of one query with scores (P,) of positives and (N,) of negatives.

    It is the mean of r+ / r. Ranks count the items at or above a score, so each of several tied
    items has the worst of their ranks, as in the losses. P must be at least 1.
    """
    own, others = np.sort(-positive), np.sort(-negative)
    # In ascending negated scores, what lies left of a score or on it ranks at or above it.
    rank_positive = np.searchsorted(own, own, side="right")
    rank_negative = np.searchsorted(others, own, side="right")
    return float(np.mean(rank_positive / (rank_positive + rank_negative)))


def batch_ap(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the AP (B,) of every row of (B, B) scores over the other rows; NaN if no positive."""
    result = np.full(len(labels), np.nan)
    for query, row in enumerate(scores):
        same = labels == labels[query]
        negative = row[~same]
        same[query] = False
        if same.any():
            result[query] = average_precision(row[same], negative)
    return result
