"""Divergence is an outcome: a rate with its interval, and a test of its own."""

import numpy as np
import pandas as pd
from scipy.stats import binomtest, fisher_exact

from benchmark.runs.table import RunTable

CELL = ["dataset", "setting", "batch_size", "loss"]
DIVERGENCE_COLUMNS = [*CELL, "n_diverged", "n_ended", "rate", "low", "high", "diverges"]
TOLERATED = 0.1  # share of diverging runs that a usable loss may have


def diverges(diverged: int, runs: int, alpha: float = 0.05) -> bool:
    """Return whether more than the ``TOLERATED`` share of runs diverges, by the exact test.

    2 of 2, 2 of 3 and 3 of 5 runs show it; a single run, 1 of 3 and 2 of 5 do not.
    """
    return bool(
        runs and binomtest(diverged, runs, TOLERATED, alternative="greater").pvalue <= alpha
    )


def p_more_divergence(first: tuple[int, int], second: tuple[int, int]) -> float:
    """Return Fisher's exact p that the first (diverged, runs) diverges no more than the second."""
    table = np.array([[diverged, runs - diverged] for diverged, runs in (first, second)])
    return float(fisher_exact(table, alternative="greater").pvalue)


def divergence_rates(table: RunTable, confidence: float = 0.95) -> pd.DataFrame:
    """Return the rate of each cell of which a run has ended (``DIVERGENCE_COLUMNS``).

    Its interval is the exact one of Clopper and Pearson (1934).
    """
    runs = table.attempts()
    runs = runs[runs["status"].isin(["ok", "diverged"])]
    rows = []
    for cell, part in runs.groupby(CELL)["status"]:
        gone, ended = int((part == "diverged").sum()), len(part)
        low, high = binomtest(gone, ended).proportion_ci(confidence)
        rows.append((*cell, gone, ended, gone / ended, low, high, diverges(gone, ended)))
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
    diverging = set(map(tuple, rates.loc[rates["diverges"], CELL].itertuples(index=False)))

    def gone(side: str) -> pd.Series:
        cells = tests[[*CELL[:-1], side]].itertuples(index=False)
        return pd.Series([tuple(cell) in diverging for cell in cells], tests.index, dtype=bool)

    one, two = gone("loss"), gone("against")
    lost = tests["loss"].where(one & ~two, tests["against"].where(two & ~one, ""))
    return tests.assign(lost=lost, significant=tests["significant"].astype(bool) & (one == two))
