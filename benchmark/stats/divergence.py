"""Divergence is an outcome: a rate with its interval, and a test of its own."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import binomtest, fisher_exact

from benchmark.runs.table import RunTable

CELL = ["dataset", "setting", "batch_size", "loss"]
DIVERGENCE_COLUMNS = [*CELL, "n_diverged", "n_ended", "rate", "low", "high", "diverges"]
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


def divergence_rates(table: RunTable, confidence: float = 0.95) -> pd.DataFrame:
    """Return the rate of each cell of which a run has ended (``DIVERGENCE_COLUMNS``)."""
    runs = table.attempts()
    runs = runs[runs["status"].isin(["ok", "diverged"])]
    gone = runs.assign(gone=runs["status"] == "diverged").groupby(CELL)["gone"]
    rows = []
    for cell, part in gone:
        found = divergence_rate(int(part.sum()), len(part), confidence)
        numbers = (found.diverged, found.runs, found.value, found.low, found.high)
        rows.append((*cell, *numbers, diverges(found.diverged, found.runs)))
    return pd.DataFrame(rows, columns=DIVERGENCE_COLUMNS)


def with_diverged(scores: pd.DataFrame, table: RunTable) -> pd.DataFrame:
    """Return ``scores`` with an empty one for each split and metric of each diverged run.

    So a loss that diverges under every seed is compared as well, and loses.
    """
    runs = table.attempts()
    gone = runs[runs["status"] == "diverged"].drop(columns="status")
    where = ["dataset", "setting", "split", "metric"]
    return pd.concat([scores, gone.merge(scores[where].drop_duplicates(), on=where[:2])])


def with_losers(tests: pd.DataFrame, rates: pd.DataFrame) -> pd.DataFrame:
    """Return ``tests`` between losses with ``lost``: the side that alone diverges, or "".

    Such a test is not significant, whatever the runs say that are left.
    """
    where = CELL[:-1]
    diverging = {tuple(row) for row in rates.loc[rates["diverges"], CELL].itertuples(index=False)}
    places = [tuple(place) for place in tests[where].itertuples(index=False)]

    def gone(side: str) -> list[bool]:
        return [(*at, loss) in diverging for at, loss in zip(places, tests[side], strict=True)]

    sides = zip(tests["loss"], tests["against"], gone("loss"), gone("against"), strict=True)
    lost = [("" if one == two else loss if one else against) for loss, against, one, two in sides]
    decided = pd.Series([bool(loser) for loser in lost], index=tests.index, dtype=bool)
    significant = tests["significant"].astype(bool) & ~decided
    losers = pd.Series(lost, index=tests.index, dtype=object)
    return tests.assign(lost=losers, significant=significant)
