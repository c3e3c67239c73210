"""How much does the batch size decide? Welch's t-test: runs of two batch sizes share no batches.

They share a seed, and so split and initial weights. As far as that makes their scores alike, the
test is wrong more rarely than it promises (docs/background/statistics.md).
"""

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from benchmark.stats.intervals import Floats, spread
from benchmark.stats.paired import PLACE, corrected

COLUMNS = [
    *PLACE, "loss", "batch_size", "against", "n", "n_against", "mean", "mean_against", "difference",
    "se", "df", "ci_low", "ci_high", "t", "p", "detectable", "family", "p_holm", "family_size",
    "significant",
]  # fmt: skip


def welch_test(first: Floats, second: Floats, alpha: float = 0.05) -> dict[str, float]:
    """Return Welch's two-sided t-test (1947) of two samples, with its 1 - ``alpha`` interval.

    Keys are those of ``COLUMNS``, from "n" to "p". Below two values on a side, and without any
    spread, there is no test, and those from "se" on are left out.
    """
    n = len(first)
    n_against = len(second)
    mean = first.mean()
    mean_against = second.mean()
    found = {"n": n, "n_against": n_against, "mean": mean, "mean_against": mean_against}
    found["difference"] = mean - mean_against
    if min(n, n_against) < 2 or not spread(first) + spread(second) > 0:
        return found
    test = stats.ttest_ind(first, second, equal_var=False)
    low, high = test.confidence_interval(1 - alpha)
    se = np.sqrt(first.var(ddof=1) / n + second.var(ddof=1) / n_against)
    ends = {"ci_low": low, "ci_high": high}
    return found | {"se": se, "df": test.df, **ends, "t": test.statistic, "p": test.pvalue}


def batch_size_tests(scores: pd.DataFrame, alpha: float = 0.05) -> pd.DataFrame:
    """Return the test of each loss at a place (``COLUMNS``): its largest batch size - its smallest.

    ``scores`` has one row per run and metric (``RunTable.test_scores``). The tests of one dataset,
    split and metric are a family of Holm's correction.
    """
    rows = []
    keys = [*PLACE, "loss"]
    place: Any
    for place, runs in scores.groupby(keys):
        sizes = runs["batch_size"]
        values = runs["value"].to_numpy()
        largest = sizes.max()
        smallest = sizes.min()
        if largest > smallest:
            test = welch_test(values[sizes == largest], values[sizes == smallest], alpha)
            facts = dict(zip(keys, place, strict=True))
            family = "batch size: {dataset} {split} {metric}".format_map(facts)
            facts |= {"family": family, "batch_size": largest, "against": smallest}
            rows.append(facts | test)
    tests = pd.DataFrame(rows).reindex(columns=COLUMNS)
    return corrected(tests, alpha) if rows else tests
