"""How much does the batch size decide? Welch's t-test: runs of two batch sizes share no batches.

They share a seed, and so split and initial weights. As far as that makes their scores alike, the
test is wrong more rarely than it promises (docs/background/statistics.md).
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from benchmark.stats.intervals import Floats, spread
from benchmark.stats.paired import PLACE, corrected


class WelchTest(NamedTuple):
    """Two samples of ``n`` and ``n_against`` values; NaN where there is no test."""

    n: int
    n_against: int
    mean: float
    mean_against: float
    difference: float
    se: float = np.nan
    df: float = np.nan
    ci_low: float = np.nan
    ci_high: float = np.nan
    t: float = np.nan
    p: float = np.nan


TESTED = [*PLACE, "loss", "batch_size", "against", *WelchTest._fields]
COLUMNS = [*TESTED, "detectable", "family", "p_holm", "family_size", "significant"]


def welch_test(first: Floats, second: Floats, alpha: float = 0.05) -> WelchTest:
    """Return Welch's two-sided t-test (1947) of two samples, with its 1 - ``alpha`` interval.

    Below two values on a side, and without any spread, there is no test.
    """
    n = len(first)
    n_against = len(second)
    mean = float(first.mean())
    mean_against = float(second.mean())
    untested = WelchTest(n, n_against, mean, mean_against, mean - mean_against)
    if min(n, n_against) < 2 or not spread(first) + spread(second) > 0:
        return untested
    result = stats.ttest_ind(first, second, equal_var=False)
    se = np.sqrt(first.var(ddof=1) / n + second.var(ddof=1) / n_against)
    low, high = result.confidence_interval(1 - alpha)
    return WelchTest(*untested[:5], se, result.df, low, high, result.statistic, result.pvalue)


def batch_size_tests(scores: pd.DataFrame, alpha: float = 0.05) -> pd.DataFrame:
    """Return the test of each loss at a place (``COLUMNS``): its largest batch size - its smallest.

    ``scores`` has one row per run and metric (``RunTable.test_scores``). The tests of one dataset,
    split and metric are a family of Holm's correction.
    """
    rows = []
    place: Any
    for place, runs in scores.groupby([*PLACE, "loss"]):
        sizes = runs["batch_size"]
        values = runs["value"].to_numpy()
        largest = sizes.max()
        smallest = sizes.min()
        if largest > smallest:
            test = welch_test(values[sizes == largest], values[sizes == smallest], alpha)
            rows.append((*place, largest, smallest, *test))
    tests = pd.DataFrame(rows, columns=TESTED)
    if rows:
        family = "batch size: " + tests["dataset"] + " " + tests["split"] + " " + tests["metric"]
        tests = corrected(tests.assign(family=family), alpha)
    return tests.reindex(columns=COLUMNS)
