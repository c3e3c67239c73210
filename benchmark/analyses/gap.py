"""Average precision by counting; the decomposability gap of one query and its two upper bounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

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


@dataclass(frozen=True)
class Batch:
    """Scores of the positives (P,) and negatives (N,) that one query meets in one batch."""

    positive: np.ndarray
    negative: np.ndarray

    @property
    def average_precision(self) -> float:
        """Return the AP of the query in this batch."""
        return average_precision(self.positive, self.negative)

    @property
    def perfect(self) -> bool:
        """Return whether the batch is ranked perfectly, which both bounds assume."""
        return bool(self.positive.min() > self.negative.max())


def gap(batches: Sequence[Batch]) -> float:
    """Return Eq. 6: the mean AP over the batches minus the AP over all of them together."""
    whole = Batch(
        np.concatenate([batch.positive for batch in batches]),
        np.concatenate([batch.negative for batch in batches]),
    )
    return float(np.mean([batch.average_precision for batch in batches])) - whole.average_precision


def plain_bound(batches: Sequence[Batch]) -> float:
    """Return Eq. 8: the gap of perfect batches, each ranked below the one before.

    (The equation's inner sum runs over the positives of a batch.)
    """
    total, positives, negatives = 0.0, 0, 0
    for batch in batches:
        ranks = np.arange(1, len(batch.positive) + 1) + positives
        total += float(np.sum(ranks / (ranks + negatives)))
        positives += len(batch.positive)
        negatives += len(batch.negative)
    return 1.0 - total / positives


def calibrated_bound(batches: Sequence[Batch], alpha: float, beta: float) -> float:
    """Return Eq. 9, which counts positives at or above ``alpha`` and negatives above ``beta``.

    It depends on the order of the batches, which the paper leaves open.
    """
    return _calibrated_bound(_counts(batches, alpha, beta))


def worst_calibrated_bound(batches: Sequence[Batch], alpha: float, beta: float) -> float:
    """Return the largest value of Eq. 9 over all orders of the batches (at most K! of them)."""
    return max(map(_calibrated_bound, set(permutations(_counts(batches, alpha, beta)))))


# Of one batch: good positives, positives, bad negatives, negatives.
Counts = tuple[int, int, int, int]


def _counts(batches: Sequence[Batch], alpha: float, beta: float) -> list[Counts]:
    return [
        (
            int(np.sum(batch.positive >= alpha)),
            len(batch.positive),
            int(np.sum(batch.negative > beta)),
            len(batch.negative),
        )
        for batch in batches
    ]


def _calibrated_bound(batches: Sequence[Counts]) -> float:
    total, good, positives, bad, negatives = 0.0, 0, 0, 0, 0  # the last four: in the batches before
    for here_good, here_positives, here_bad, here_negatives in batches:
        for rank in range(1, here_good + 1):
            total += (rank + good) / (rank + good + bad)
        for rank in range(here_good + 1, here_positives + 1):
            total += (rank + positives) / (rank + positives + negatives)
        good, positives = good + here_good, positives + here_positives
        bad, negatives = bad + here_bad, negatives + here_negatives
    return 1.0 - total / positives


def draw_batches(
    rng: np.random.Generator,
    positive: np.ndarray,
    negative: np.ndarray,
    size: int,
    each: int,
    most: int,
) -> list[Batch]:
    """Return up to ``most`` disjoint batches of ``size`` items with ``each`` positives.

    Return none when not even two fit.
    """
    others = size - each
    count = min(most, len(positive) // each, len(negative) // others)
    if count < 2:
        return []
    positive, negative = rng.permutation(positive), rng.permutation(negative)
    return [
        Batch(positive[k * each : (k + 1) * each], negative[k * others : (k + 1) * others])
        for k in range(count)
    ]
