"""Intervals over queries: had other classes been tested, how different would the score be?

Queries of one class share images and difficulty, so that classes, not queries, are the sample:
whole classes are drawn with replacement (cluster bootstrap). The interval over seeds asks another
question, how different another training would be; the two stand side by side. All runs on a dataset
are given the same draws, so that a difference of two losses has its interval, too.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmark.core.results import read_query_scores
from benchmark.runs.table import RunTable
from benchmark.stats.intervals import Floats, drawn_weights, percentile_interval

REPETITIONS, AT_ONCE = 2000, 250
CELL = ["dataset", "setting", "batch_size", "loss"]
Classes = NDArray[np.int64]


@dataclass(frozen=True)
class QueryInterval:
    """A mean over queries with its interval; ``classes`` are what was drawn."""

    mean: float
    low: float
    high: float
    queries: int
    classes: int


@dataclass(frozen=True)
class DrawnScore:
    """One score under each draw of classes (REPETITIONS,), and what it is a mean of."""

    drawn: Floats
    mean: float
    labels: Classes
    queries: int

    def interval(self, confidence: float) -> QueryInterval:
        """Return the mean with its percentile interval; NaN ends for fewer than two classes."""
        low = high = np.nan
        if len(self.labels) > 1:
            low, high = map(float, percentile_interval(self.drawn, confidence))
        return QueryInterval(self.mean, low, high, self.queries, len(self.labels))


def drawn_scores(
    scores: Mapping[str, Floats], classes: NDArray[np.generic]
) -> dict[str, DrawnScore]:
    """Return the mean of each of ``scores`` (Q,) under draws of their ``classes`` (Q,).

    Equal classes are given the same draws. Differences of two runs' scores by query give those of
    their difference.
    """
    labels, index = np.unique(classes, return_inverse=True)
    columns = [np.ones(len(index)), *scores.values()]
    totals = np.column_stack([np.bincount(index, weights=values) for values in columns])
    parts = np.split(_counts(len(labels)), REPETITIONS // AT_ONCE)
    sums = np.concatenate([part.astype(float) @ totals for part in parts])
    means = sums[:, 1:] / sums[:, :1]
    return {
        name: DrawnScore(means[:, number], float(np.mean(values)), labels, len(index))
        for number, (name, values) in enumerate(scores.items())
    }


@functools.lru_cache(maxsize=4)
def _counts(classes: int) -> NDArray[np.uint8]:
    """Return how often each class is drawn (REPETITIONS, C); a byte each, as there may be many."""
    stratum = np.zeros(classes)
    seeds = range(0, REPETITIONS, AT_ONCE)
    parts = [drawn_weights(stratum, AT_ONCE, seed).astype(np.uint8) for seed in seeds]
    return np.concatenate(parts)


def query_interval(
    scores: Floats, classes: NDArray[np.generic], confidence: float = 0.95
) -> QueryInterval:
    """Return the mean of ``scores`` (Q,) and its percentile interval over drawn classes (Q,)."""
    return drawn_scores({"": scores}, classes)[""].interval(confidence)


class Draws:
    """The drawn scores of a study's runs: by cell, split and metric, then seed."""

    def __init__(self, confidence: float = 0.95):
        self.confidence = confidence
        self._scores: dict[tuple[Any, ...], dict[int, DrawnScore]] = {}

    @classmethod
    def read(
        cls, table: RunTable, results: Path, metrics: Sequence[str], confidence: float = 0.95
    ) -> Draws:
        """Return those of the runs that kept their queries' scores."""
        draws = cls(confidence)
        scores = table.test_scores("last", metrics)
        last = {run: rows for run, rows in scores.groupby("run_id")}
        digests = dict(zip(table.runs["run_id"], table.runs["spec_digest"], strict=True))
        for run, rows in last.items():
            means: dict[str, dict[str, float]] = {}
            for split, metric, value in rows[["split", "metric", "value"]].itertuples(index=False):
                means.setdefault(split, {})[metric] = value
            folder = Path(results) / "runs" / str(run)
            splits = read_query_scores(folder, digests[run]) or {}
            first = rows.iloc[0]
            for split in sorted(means.keys() & splits.keys()):
                kept = splits[split]
                by_metric = {metric: kept.of(metric) for metric in means[split]}
                known = {name: values for name, values in by_metric.items() if values is not None}
                for metric, drawn in drawn_scores(known, kept.label).items():
                    key = (*(first[name] for name in CELL), split, metric)
                    draws._scores.setdefault(key, {})[int(first["seed"])] = drawn
        return draws

    def interval(self, row: Mapping[str, Any]) -> QueryInterval | None:
        """Return the interval of the mean over seeds of a row of ``summary``; None if not known."""
        seeds = self._at(row, row["loss"])
        return self._mean(seeds.values()) if len(seeds) == row["n"] else None

    def difference(self, row: Mapping[str, Any]) -> QueryInterval | None:
        """Return the interval of a row of tests, over the seeds that both losses have."""
        ours, theirs = (self._at(row, row[side]) for side in ("loss", "against"))
        common = ours.keys() & theirs.keys()
        if not common or len(common) != row["n"]:
            return None
        return self._mean([ours[seed] for seed in common], [theirs[seed] for seed in common])

    def _at(self, row: Mapping[str, Any], loss: str) -> dict[int, DrawnScore]:
        cell = [loss if name == "loss" else row[name] for name in CELL]
        return self._scores.get((*cell, row["split"], row["metric"]), {})

    def _mean(
        self, first: Iterable[DrawnScore], second: Iterable[DrawnScore] = ()
    ) -> QueryInterval | None:
        """Return the interval of the mean of ``first``, minus that of ``second`` if it is given."""
        ours, theirs = list(first), list(second)
        same = [each for each in (*ours, *theirs) if np.array_equal(each.labels, ours[0].labels)]
        if not ours or len(same) < len(ours) + len(theirs):
            return None
        drawn = np.mean([each.drawn for each in ours], axis=0)
        mean = np.mean([each.mean for each in ours])
        if theirs:
            drawn = drawn - np.mean([each.drawn for each in theirs], axis=0)
            mean -= np.mean([each.mean for each in theirs])
        whole = DrawnScore(drawn, float(mean), ours[0].labels, ours[0].queries)
        return whole.interval(self.confidence)


QUERY_COLUMNS = ["query_low", "query_high", "queries", "classes"]


def with_query_intervals(table: pd.DataFrame, draws: Draws | None) -> pd.DataFrame:
    """Return ``table`` of cells, or of tests between losses, with ``QUERY_COLUMNS``.

    They are empty where some run did not keep its queries' scores.
    """
    rows: list[Any] = table.to_dict("records")
    of = None if draws is None else draws.difference if "against" in table else draws.interval
    found = [None if of is None else of(row) for row in rows]
    ends = [(q.low, q.high, q.queries, q.classes) if q else (np.nan,) * 4 for q in found]
    columns = pd.DataFrame(ends, columns=QUERY_COLUMNS, index=table.index, dtype=float)
    return table.assign(**{name: columns[name] for name in QUERY_COLUMNS})
