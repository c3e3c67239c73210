"""Divergence is an outcome: a rate with its interval, and a test of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest, fisher_exact

TOLERATED = 0.1  # share of diverging runs that a usable loss may have


@dataclass(frozen=True)
class DivergenceRate:
    """``diverged`` of ``runs``, with the exact interval of Clopper and Pearson (1934)."""

    diverged: int
    runs: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The observed rate; NaN without any run."""
        return self.diverged / self.runs if self.runs else float("nan")


def divergence_rate(diverged: int, runs: int, confidence: float = 0.95) -> DivergenceRate:
    """Return the rate of diverging runs; anything between 0 and 1 without any run."""
    if not runs:
        return DivergenceRate(0, 0, 0.0, 1.0)
    interval = binomtest(diverged, runs).proportion_ci(confidence)
    return DivergenceRate(diverged, runs, float(interval.low), float(interval.high))


def diverges(diverged: int, runs: int, alpha: float = 0.05) -> bool:
    """Return whether more than the ``TOLERATED`` share of runs diverges, by the exact test.

    2 of 2, 2 of 3 and 3 of 5 runs show it; a single run, 1 of 3 and 2 of 5 do not.
    """
    return bool(runs) and _p_above_tolerated(diverged, runs) <= alpha


def _p_above_tolerated(diverged: int, runs: int) -> float:
    return float(binomtest(diverged, runs, TOLERATED, alternative="greater").pvalue)


def p_more_divergence(first: tuple[int, int], second: tuple[int, int]) -> float:
    """Return Fisher's exact p that the first (diverged, runs) diverges no more than the second."""
    table = np.array([[diverged, runs - diverged] for diverged, runs in (first, second)])
    return float(fisher_exact(table, alternative="greater").pvalue)
