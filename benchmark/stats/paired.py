"""Paired t-tests: two losses under the same seeds share split, initial weights, batches and augmentation."""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from scipy import stats

from benchmark.stats.intervals import t_interval
from benchmark.stats.power import detectable_difference

PLACE = ["dataset", "setting", "batch_size", "split", "metric"]


@dataclass(frozen=True)
class Paired:
    """One test of ``first - second`` over their common seeds; NaN where nothing can be computed."""

    n: int
    mean: float
    mean_against: float
    difference: float
    sd_difference: float
    ci_low: float
    ci_high: float
    t: float
    p: float
    d_z: float
    detectable: float
    note: str


def paired_test(first: pd.Series, second: pd.Series, alpha: float = 0.05) -> Paired:
    """Returns the paired t-test of two series of scores indexed by seed.

    Only seeds that both series have, with finite values, are used. One pair gives a difference and no test;
    differences without any spread give no t statistic, because their error cannot be estimated.
    """
    first, second = first[np.isfinite(first)], second[np.isfinite(second)]
    common = first.index.intersection(second.index)
    a, b = first.loc[common].to_numpy(float), second.loc[common].to_numpy(float)
    n, notes = len(common), []
    if n < max(len(first), len(second)):
        notes.append(f"{n} common seeds of {len(first)} and {len(second)}")
    summary = t_interval(a - b, 1 - alpha)
    t = p = d_z = detectable = np.nan
    if n == 0:
        notes.append("no common seed, no test")
    elif n == 1:
        notes.append("one pair, no test")
    elif summary.sd == 0:
        same = "identical runs" if summary.mean == 0 else "the same difference at every seed"
        notes.append(f"{same}, no test")
    else:
        result = stats.ttest_rel(a, b)
        t, p = float(result.statistic), float(result.pvalue)
        d_z = summary.mean / summary.sd
        detectable = detectable_difference(n, summary.sd, alpha)
    means = (float(a.mean()), float(b.mean())) if n else (np.nan, np.nan)
    return Paired(
        n,
        *means,
        summary.mean,
        summary.sd,
        summary.low,
        summary.high,
        t,
        p,
        d_z,
        detectable,
        "; ".join(notes),
    )


def by_seed(table: pd.DataFrame) -> dict[str, pd.Series]:
    """Returns {loss: scores indexed by seed} of one place, losses in alphabetical order."""
    return {str(loss): rows.set_index("seed")["value"].sort_index() for loss, rows in table.groupby("loss")}


def compare(scores: pd.DataFrame, baseline: str | None, alpha: float = 0.05) -> pd.DataFrame:
    """Returns one row per tested pair: every loss against ``baseline``, and all pairs.

    ``scores`` is one row per run and metric (``benchmark.stats.runs.scores``). The family of a test is all
    tests of its kind on one dataset, split and metric: settings and batch sizes stand in the same table.
    """
    rows = []
    for place, group in scores.groupby(PLACE, sort=True):
        where = dict(zip(PLACE, place, strict=True))
        series = by_seed(group)
        pairs = [("baseline", loss, baseline) for loss in series if baseline in series and loss != baseline]
        pairs += [("pairs", first, second) for first, second in itertools.combinations(series, 2)]
        for kind, loss, against in pairs:
            test = paired_test(series[loss], series[against], alpha)
            rows.append({**where, "kind": kind, "loss": loss, "against": against, **asdict(test)})
    return pd.DataFrame(rows)
