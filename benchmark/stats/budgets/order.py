"""How sure the order of losses is when trials and seeds are drawn again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Order:
    """The order of L losses under draws; rank 1 is the best.

    low, high   (L,): bounds of the middle share of ranks
    kendall     mean Kendall tau between the order of a draw and that of the scores
    flipped     mean share of pairs of losses whose order is another one
    best_kept   share of draws with the same best loss
    """

    low: Floats
    high: Floats
    kendall: float
    flipped: float
    best_kept: float


def order_under(scores: Floats, draws: Floats, alpha: float = 0.05) -> Order:
    """Return how the order of ``scores`` (L,) holds in ``draws`` (L, B)."""
    ranks = stats.rankdata(-draws, axis=0)
    low, high = np.quantile(ranks, [alpha / 2, 1 - alpha / 2], axis=1)
    first, second = np.triu_indices(len(scores), 1)
    as_scored = np.sign(scores[first] - scores[second])[:, None]
    agreement = np.sign(draws[first] - draws[second]) * as_scored
    best_kept = float((draws.argmax(axis=0) == scores.argmax()).mean())
    return Order(low, high, float(agreement.mean()), float((agreement < 0).mean()), best_kept)


def seeds_drawn(finals: Floats, draws: int, generator: np.random.Generator) -> Floats:
    """Return (L, draws) means of final scores (L, S), with the seeds drawn again for all alike."""
    seeds = generator.integers(finals.shape[1], size=(draws, finals.shape[1]))
    means: Floats = np.nanmean(finals[:, seeds], axis=2)
    return means
