"""Intervals over queries: had other classes been tested, how different would the score be?

Queries of one class share images and difficulty, so that classes, not queries, are the sample:
whole classes are drawn with replacement (cluster bootstrap). The interval over seeds asks another
question, how different another training would be; the two stand side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import bootstrap

Floats = NDArray[np.float64]
REPETITIONS = 2000


@dataclass(frozen=True)
class QueryInterval:
    """A mean over queries with its interval; ``classes`` are what was drawn."""

    mean: float
    low: float
    high: float
    queries: int
    classes: int


def query_interval(
    scores: Floats, classes: NDArray[np.generic], confidence: float = 0.95, seed: int = 0
) -> QueryInterval:
    """Return the mean of ``scores`` (Q,) and its percentile interval over drawn classes (Q,).

    Differences of two runs' scores by query give the interval of their difference. NaN ends for
    fewer than two classes.
    """
    labels, index = np.unique(classes, return_inverse=True)
    sums = np.bincount(index, weights=scores, minlength=len(labels))
    counts = np.bincount(index, minlength=len(labels)).astype(float)
    mean = float(sums.sum() / counts.sum())
    if len(labels) < 2:
        return QueryInterval(mean, np.nan, np.nan, len(scores), len(labels))
    found = bootstrap(
        (sums, counts),
        lambda sums, counts, axis: sums.sum(axis=axis) / counts.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=REPETITIONS,
        confidence_level=confidence,
        method="percentile",
        rng=np.random.default_rng(seed),
    )
    low, high = found.confidence_interval
    return QueryInterval(mean, float(low), float(high), len(scores), len(labels))


@dataclass(frozen=True)
class ChangedQueries:
    """The queries whose score changed between two runs, as indices, largest change first."""

    better: NDArray[np.int64]
    worse: NDArray[np.int64]


def changed_queries(first: Floats, second: Floats) -> ChangedQueries:
    """Return the queries that are better and worse in ``second`` than in ``first`` (Q,)."""
    change = np.asarray(second, float) - np.asarray(first, float)
    rising = np.argsort(change, kind="stable")
    worse = rising[change[rising] < 0]
    better = rising[::-1][change[rising[::-1]] > 0]
    return ChangedQueries(better, worse)
