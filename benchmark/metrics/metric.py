"""The retrieval metrics: one object each, which is all that the suite knows of a metric.

A new entry of ``METRICS`` is measured by every evaluation and kept for every query; studies,
tables, verdicts and the command line accept its name.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from benchmark.core.errors import unknown_name

_K = r"([1-9][0-9]{0,8})"


class Ranked(NamedTuple):
    """The positives of a block of Q queries that have some.

    counts     (Q,): positives of each query
    starts     (Q,): where the values of each query start in the next two
    ranks      (sum of counts,): ascending within each query, 1 = nearest
    precision  the same shape: precision at each of these ranks
    """

    counts: np.ndarray
    starts: np.ndarray
    ranks: np.ndarray
    precision: np.ndarray

    @classmethod
    def of(cls, counts: np.ndarray, ranks: np.ndarray) -> "Ranked":
        """Return the positives with these counts and ranks."""
        starts = np.cumsum(counts) - counts
        number = np.arange(len(ranks)) - np.repeat(starts, counts) + 1
        return cls(counts, starts, ranks, number / ranks)

    @property
    def nearest(self) -> np.ndarray:
        """The rank (Q,) of the nearest positive."""
        return self.ranks[self.starts]

    def total(self, values: np.ndarray) -> np.ndarray:
        """Return the sum (Q,) over the positives of each query of one value a positive."""
        return np.add.reduceat(values, self.starts, dtype=float)


@dataclass(frozen=True)
class Metric:
    """A metric, or one for each K where ``family`` ends in ``_k`` and ``display`` in K.

    per_query  returns each query's score (Q,), of ``Ranked`` and K; their mean is the metric
    margin     of equivalence in percentage points: (score in percent from which on, margin)
    """

    family: str
    display: str
    description: str
    per_query: Callable[[Ranked, int], np.ndarray]
    margin: tuple[tuple[float, float], ...]

    def at(self, k: object, shown: bool = False) -> str:
        """Return the name for K, or as tables show it: ``recall_at_10`` or ``R@10``."""
        name = self.display if shown else self.family
        return f"{name[:-1]}{k}" if self.has_k else name

    @property
    def has_k(self) -> bool:
        """Whether there is one for each K."""
        return self.family.endswith("_k")


def _precision_within_r(ranked: Ranked, k: int) -> np.ndarray:
    within = ranked.ranks <= np.repeat(ranked.counts, ranked.counts)
    return ranked.total(np.where(within, ranked.precision, 0.0)) / ranked.counts


def trapezoids(numbers: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Return the precision at each positive, averaged with that just before it (``landmark_scores``
    has the formula): its ``numbers`` from 1 and its ``ranks``, both (P,)."""
    before = np.where(ranks > 1, (numbers - 1) / np.maximum(ranks - 1, 1), 1.0)
    return (before + numbers / ranks) / 2


# Margins: two of the largest spread that a paper prints for the metric (ROADMAP, table 5: 0.51 for
# R@1, 0.27 for mAP@R). No spread is printed for recalls above 86; there the margin shrinks like the
# noise of a share p, sqrt(p (1 - p)). docs/statistics.md has the table of spreads.
METRICS: dict[str, Metric] = {
    metric.family: metric
    for metric in (
        Metric(
            "recall_at_k",
            "R@K",
            "share of queries with a positive among the K nearest items",
            lambda found, k: found.nearest <= k,
            margin=((0.0, 1.0), (85.0, 0.7), (95.0, 0.4)),
        ),
        Metric(
            "map_at_r",
            "mAP@R",
            "precision averaged over the first R positions, R = number of the query's positives",
            _precision_within_r,
            margin=((0.0, 0.5),),
        ),
        Metric(
            "map",
            "mAP",
            "average precision over all positives of the query (landmark sets: by trapezoids, "
            "without junk images)",
            lambda found, k: found.total(found.precision) / found.counts,
            margin=((0.0, 1.0),),
        ),
    )
}


def metric_of(name: str) -> Metric | None:
    """Return the metric that ``name`` belongs to; None if there is no such metric."""
    return next((metric for metric in METRICS.values() if re.fullmatch(metric.at(_K), name)), None)


def k_of(name: str) -> int | None:
    """Return the K in the name of a metric; None for a metric without one."""
    metric = metric_of(name)
    return int(name[len(metric.at("")) :]) if metric and metric.has_k else None


def check_metric(name: str) -> str | None:
    """Return the problem of a metric's name; None for a valid name."""
    if isinstance(name, str) and metric_of(name):
        return None
    known = []
    for metric in METRICS.values():
        values_of_k = " (K = 1, 2, ..., 999999999)" if metric.has_k else ""
        known.append(metric.at("K") + values_of_k)
    return unknown_name("metric", name, known)


def metric_named(text: str) -> str:
    """Return the name of a metric that is written as people do: ``recall_at_10`` for ``R@10``.

    Letter case does not count, and ``Recall@10`` is known, too. Any other text stays as it is.
    """
    short = re.sub(r"(?i)^recall@", "R@", text.strip())
    for metric in METRICS.values():
        names = f"{metric.at(_K)}|{metric.at(_K, shown=True)}"
        if found := re.fullmatch(names, short, re.IGNORECASE):
            return metric.at(found[found.lastindex or 0])
    return text


def display_name(name: str) -> str:
    """Return the name as tables show it: ``recall_at_10`` is ``R@10``; others stay."""
    metric = metric_of(name)
    return metric.at(k_of(name), shown=True) if metric else name
