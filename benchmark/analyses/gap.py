"""Average precision by counting and by a loss; the gap of one query and its two upper bounds."""

from collections.abc import Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

BATCHES = 4  # of one query at most: Eq. 9 is evaluated in all their orders


def average_precision(positive: np.ndarray, negative: np.ndarray) -> float:
    """Return the AP of one query with scores (P,) of positives and (N,) of negatives: mean r+ / r.

    Ranks count the items at or above a score: tied items have the worst of their ranks, as in the
    losses.
    """
    own, others = np.sort(-positive), np.sort(-negative)
    # In ascending negated scores, what lies left of a score or on it ranks at or above it.
    rank_positive = np.searchsorted(own, own, side="right")
    rank_negative = np.searchsorted(others, own, side="right")
    return float(np.mean(rank_positive / (rank_positive + rank_negative)))


def ap_loss(scores: np.ndarray, positive: np.ndarray) -> float:
    """Return 1 - AP of scores (R,) of which those of ``positive`` (R,) are relevant."""
    return 1 - average_precision(scores[positive], scores[~positive])


def value_and_gradient(loss: Any, scores: np.ndarray, positive: np.ndarray) -> tuple[Any, Any]:
    """Return 1 - AP (...,) of scores (..., R) as a loss has it, and its gradient (..., R)."""
    import torch

    leaf = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
    rows = torch.atleast_2d(leaf)
    values = loss.query_losses(rows, torch.tensor(positive).expand(len(rows), -1))
    values.sum().backward()
    assert leaf.grad is not None
    return values.detach().numpy().reshape(leaf.shape[:-1])[()], leaf.grad.numpy()


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


class Batch(NamedTuple):
    """Scores of the positives (P,) and negatives (N,) that one query meets in one batch."""

    positive: np.ndarray
    negative: np.ndarray

    @property
    def perfect(self) -> bool:
        """Return whether the batch is ranked perfectly, which both bounds assume."""
        return bool(self.positive.min() > self.negative.max())


def mean_ap(batches: Sequence[Batch]) -> float:
    """Return the mean AP of the query over the batches."""
    return float(np.mean([average_precision(*batch) for batch in batches]))


def gap(batches: Sequence[Batch]) -> float:
    """Return Eq. 6: the mean AP over the batches minus the AP over all of them together."""
    return mean_ap(batches) - average_precision(*map(np.concatenate, zip(*batches, strict=True)))


def plain_bound(batches: Sequence[Batch]) -> float:
    """Return Eq. 8: the gap of perfect batches, each ranked below the one before."""
    total, positives, negatives = 0.0, 0, 0
    for batch in batches:
        ranks = np.arange(1, len(batch.positive) + 1) + positives
        total += float(np.sum(ranks / (ranks + negatives)))
        positives += len(batch.positive)
        negatives += len(batch.negative)
    return 1.0 - total / positives


def calibrated_bounds(batches: Sequence[Batch], alpha: float, beta: float) -> tuple[float, float]:
    """Return Eq. 9 for the batches in the order given, and for the worst of all their orders.

    It counts positives at or above ``alpha`` and negatives above ``beta``, and depends on the
    order of the batches, which the paper leaves open.
    """
    counts = [
        (int(np.sum(own >= alpha)), len(own), int(np.sum(others > beta)), len(others))
        for own, others in batches
    ]
    # batches with equal counts may change places: few orders differ
    bounds = [_calibrated_bound(order) for order in dict.fromkeys(permutations(counts))]
    return bounds[0], max(bounds)


def _calibrated_bound(batches: Sequence[tuple[int, int, int, int]]) -> float:
    total, good, positives, bad, negatives = 0.0, 0, 0, 0, 0  # the last four: in the batches before
    for here_good, here_positives, here_bad, here_negatives in batches:
        for rank in range(1, here_good + 1):
            total += (rank + good) / (rank + good + bad)
        for rank in range(here_good + 1, here_positives + 1):
            total += (rank + positives) / (rank + positives + negatives)
        good, positives = good + here_good, positives + here_positives
        bad, negatives = bad + here_bad, negatives + here_negatives
    return 1.0 - total / positives


def draw_batches(rng: np.random.Generator, scores: Batch, size: int, each: int) -> list[Batch]:
    """Return up to ``BATCHES`` disjoint batches of ``size`` scores with ``each`` positives.

    Return none when not even two fit.
    """
    parts = (each, size - each)
    count = min(BATCHES, *(len(row) // part for row, part in zip(scores, parts, strict=True)))
    if count < 2:
        return []
    drawn = [
        rng.permutation(row)[: count * part].reshape(count, part)
        for row, part in zip(scores, parts, strict=True)
    ]
    return [Batch(*pair) for pair in zip(*drawn, strict=True)]
