"""The decomposability gap of one query and its two upper bounds (ROADMAP v2, Eq. 6, 8 and 9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from benchmark.analyses.exact_ap import average_precision


@dataclass(frozen=True)
class Batch:
    """Scores of the positives (P,) and negatives (N,) that one query meets in one batch."""

    positive: np.ndarray
    negative: np.ndarray


def gap(batches: Sequence[Batch]) -> float:
    """Returns Eq. 6: the mean AP over the batches minus the AP over all of them together."""
    whole = average_precision(
        np.concatenate([batch.positive for batch in batches]),
        np.concatenate([batch.negative for batch in batches]),
    )
    return (
        float(np.mean([average_precision(batch.positive, batch.negative) for batch in batches]))
        - whole
    )


def plain_bound(batches: Sequence[Batch]) -> float:
    """Returns Eq. 8: the gap of batches that are each ranked perfectly, when every batch ranks below the one before.

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
    """Returns Eq. 9, which counts the positives at or above ``alpha`` and the negatives above ``beta``.

    It depends on the order of the batches, which the paper leaves open; ``worst_calibrated_bound`` takes the worst.
    """
    return _calibrated_bound(_counts(batches, alpha, beta))


def worst_calibrated_bound(batches: Sequence[Batch], alpha: float, beta: float) -> float:
    """Returns the largest value of Eq. 9 over all orders of the batches (at most K! of them)."""
    return max(map(_calibrated_bound, set(permutations(_counts(batches, alpha, beta)))))


Counts = tuple[
    int, int, int, int
]  # of one batch: good positives, positives, bad negatives, negatives


def _counts(batches: Sequence[Batch], alpha: float, beta: float) -> list[Counts]:
    return [
        (
            int(np.sum(b.positive >= alpha)),
            len(b.positive),
            int(np.sum(b.negative > beta)),
            len(b.negative),
        )
        for b in batches
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


def perfect(batches: Sequence[Batch]) -> bool:
    """Returns whether every batch is ranked perfectly, which both bounds assume."""
    return all(batch.positive.min() > batch.negative.max() for batch in batches)


def draw_batches(
    rng: np.random.Generator,
    positive: np.ndarray,
    negative: np.ndarray,
    size: int,
    each: int,
    most: int,
) -> list[Batch]:
    """Returns up to ``most`` disjoint batches of ``size`` items with ``each`` positives; [] when not even two fit."""
    count = min(most, len(positive) // each, len(negative) // (size - each))
    if count < 2:
        return []
    positive, negative = rng.permutation(positive), rng.permutation(negative)
    others = size - each
    return [
        Batch(positive[k * each : (k + 1) * each], negative[k * others : (k + 1) * others])
        for k in range(count)
    ]
