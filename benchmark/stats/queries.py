"""Intervals over queries: how different would the score be if other classes had been tested?

Queries of one class share images and difficulty. So classes, and not queries, are the sample:
whole classes are drawn with replacement (cluster bootstrap). All runs on a dataset get the same
draws, so that the difference of two losses has an interval, too.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from benchmark.core.results import read_query_scores
from benchmark.runs.run_table import RunTable
from benchmark.stats.intervals import (
    NO_SPREAD,
    Floats,
    drawn_weights,
    percentile_interval,
)

REPETITIONS = 2000
AT_ONCE = 250
LOSS_CELL = ["dataset", "setting", "batch_size", "loss"]
QUERY_COLUMNS = ["query_low", "query_high", "queries", "classes"]
FEWEST_CLASSES = 20  # of an interval over other classes; docs/background/error_rates.md says why


class DrawnScore(NamedTuple):
    """One score under each draw of classes (REPETITIONS,), and how many classes and queries."""

    drawn: Floats
    classes: int
    queries: int

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the percentile interval of the mean; NaN for fewer than two classes."""
        if self.classes < 2:
            return np.nan, np.nan
        low, high = percentile_interval(self.drawn, confidence)
        return float(low), float(high)


def interval_over_classes(scores: Floats, classes: NDArray[np.generic]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of ``scores`` (Q,), had other classes been tested.

    NaN below ``FEWEST_CLASSES``. The intervals of a study's tables are those of ``DrawnScore``,
    which give the difference of two losses an interval, too.
    """
    _, index, sizes = np.unique(classes, return_inverse=True, return_counts=True)
    if len(sizes) < FEWEST_CLASSES:
        return np.nan, np.nan
    return logit_interval(np.bincount(index, weights=scores), sizes)


def logit_interval(sums: NDArray[Any], sizes: NDArray[Any]) -> tuple[float, float]:
    """Return the 95 % interval of a score in [0, 1], of its ``sums`` (C,) over queries by class.

    A t interval on the logit scale. The standard error is that of the jackknife, which leaves out
    one class at a time. The degrees of freedom are the effective number of classes less one:
    (sum of ``sizes``)^2 / (sum of their squares), Kish 1965. NaN where all classes score the same.
    """
    queries = sizes.sum()
    score = sums.sum() / queries
    without = (sums.sum() - sums) / (queries - sizes)
    se = np.sqrt(len(sizes) - 1) * without.std()
    if se < NO_SPREAD:
        return np.nan, np.nan
    effective = queries**2 / (sizes**2).sum()
    quantile = special.stdtrit(max(effective - 1, 1), 0.975)
    half = quantile * se / (score * (1 - score))
    low, high = special.expit(special.logit(score) + np.array([-half, half]))
    return float(low), float(high)


def drawn_scores(
    scores: Mapping[str, Floats], classes: NDArray[np.generic]
) -> dict[str, DrawnScore]:
    """Return the mean of each of ``scores`` (Q,) under draws of their ``classes`` (Q,).

    Runs with the same classes get the same draws. So the difference of two runs is the difference
    of their drawn scores.
    """
    labels, index = np.unique(classes, return_inverse=True)
    columns = [np.ones(len(index)), *scores.values()]
    totals = np.column_stack([np.bincount(index, weights=values) for values in columns])
    blocks = np.split(_counts(len(labels)), REPETITIONS // AT_ONCE)
    sums = np.concatenate([block.astype(float) @ totals for block in blocks])
    means = sums[:, 1:] / sums[:, :1]
    drawn = {}
    for number, name in enumerate(scores):
        drawn[name] = DrawnScore(means[:, number], len(labels), len(index))
    return drawn


@functools.lru_cache(maxsize=4)
def _counts(classes: int) -> NDArray[np.uint8]:
    """Return how often each class is drawn (REPETITIONS, C), in bytes because of many classes."""
    stratum = np.zeros(classes)
    seeds = range(0, REPETITIONS, AT_ONCE)
    blocks = [drawn_weights(stratum, AT_ONCE, seed).astype(np.uint8) for seed in seeds]
    return np.concatenate(blocks)


# The drawn scores of a study's runs: by cell, split and metric, then seed.
Draws = Mapping[tuple[Any, ...], Mapping[int, DrawnScore]]


def drawn_queries(table: RunTable, results: Path, metrics: Sequence[str]) -> Draws:
    """Return the drawn scores of the runs that kept their queries' scores."""
    draws: dict[tuple[Any, ...], dict[int, DrawnScore]] = {}
    digests = table.runs.set_index("run_id")["spec_digest"]
    for run, rows in table.test_scores("last", metrics).groupby("run_id"):
        splits = read_query_scores(results / "runs" / str(run), digests[run]) or {}
        *cell, seed = rows.iloc[0][[*LOSS_CELL, "seed"]]
        for split, of_split in rows.groupby("split"):
            kept = splits.get(str(split))
            if not kept:
                continue
            by_metric = {}
            for metric in of_split["metric"]:
                values = kept.of(metric)
                if values is not None:
                    by_metric[metric] = values
            for metric, drawn in drawn_scores(by_metric, kept.label).items():
                draws.setdefault((*cell, split, metric), {})[int(seed)] = drawn
    return draws


def with_query_intervals(
    table: pd.DataFrame, draws: Draws | None, confidence: float = 0.95
) -> pd.DataFrame:
    """Return ``table`` of cells, or of tests between losses, with ``QUERY_COLUMNS``.

    The score is a mean over seeds. A difference is a mean over the seeds that both losses have. The
    columns are empty if a run did not keep the scores of its queries.
    """

    def interval(row: Mapping[Any, Any]) -> tuple[float, ...]:
        place = (row["dataset"], row["setting"], row["batch_size"])
        sides = []
        for name in ("loss", "against"):
            if name in row:
                key = (*place, row[name], row["split"], row["metric"])
                sides.append((draws or {}).get(key, {}))
        common = list(sides[0])
        if len(sides) > 1:
            common = list(sides[0].keys() & sides[1].keys())
        if not common or len(common) != row["n"]:
            return (np.nan,) * 4
        means = []
        for side in sides:
            drawn = [side[seed].drawn for seed in common]
            means.append(np.mean(drawn, axis=0))
        mean = means[0]
        if len(means) > 1:
            mean = means[0] - means[1]
        score = sides[0][common[0]]._replace(drawn=mean)
        return (*score.interval(confidence), score.queries, score.classes)

    rows = [interval(row) for row in table.to_dict("records")]
    columns = pd.DataFrame(rows, table.index, QUERY_COLUMNS, dtype=float)
    return table.assign(**{name: columns[name] for name in QUERY_COLUMNS})
