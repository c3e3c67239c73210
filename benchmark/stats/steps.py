"""The ablation, step by step, and the relative gain of its last step (calibration) per batch size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd

from benchmark.stats.intervals import t_interval
from benchmark.stats.paired import PLACE, by_seed, paired_test


def ablation_steps(scores: pd.DataFrame, ablation: Sequence[str], alpha: float = 0.05) -> pd.DataFrame:
    """Returns the paired test of each loss of ``ablation`` against the one before it, and a total."""
    rows = []
    links = list(zip(ablation[1:], ablation, strict=False))
    if len(links) > 1:
        links.append((ablation[-1], ablation[0]))
    for place, group in scores[scores["loss"].isin(list(ablation))].groupby(PLACE, sort=True):
        where = dict(zip(PLACE, place, strict=True))
        series = by_seed(group)
        for number, (loss, against) in enumerate(links, start=1):
            if loss in series and against in series:
                step = "total" if number == len(ablation) else str(number)
                test = paired_test(series[loss], series[against], alpha)
                rows.append(
                    {
                        **where,
                        "kind": "ablation",
                        "step": step,
                        "loss": loss,
                        "against": against,
                        **asdict(test),
                    }
                )
    return pd.DataFrame(rows)


def relative_gain(scores: pd.DataFrame, loss: str, against: str, alpha: float = 0.05) -> pd.DataFrame:
    """Returns the gain of ``loss`` over ``against`` in percent of the latter, per place.

    ``gain`` is the mean over seeds of 100 (a - b) / b with its t interval; ``gain_of_means`` is
    100 (mean a - mean b) / mean b, the figure that papers print. Seeds where b is zero are dropped.
    """
    rows = []
    for place, group in scores[scores["loss"].isin([loss, against])].groupby(PLACE, sort=True):
        series = by_seed(group)
        if loss not in series or against not in series:
            continue
        common = series[loss].index.intersection(series[against].index)
        a, b = series[loss].loc[common].to_numpy(float), series[against].loc[common].to_numpy(float)
        a, b = a[b > 0], b[b > 0]
        gain = t_interval(100 * (a - b) / b, 1 - alpha)
        rows.append(
            {
                **dict(zip(PLACE, place, strict=True)),
                "loss": loss,
                "against": against,
                "n": gain.n,
                "gain": gain.mean,
                "sd": gain.sd,
                "ci_low": gain.low,
                "ci_high": gain.high,
                "gain_of_means": 100 * (a.mean() - b.mean()) / b.mean() if gain.n else np.nan,
            }
        )
    return pd.DataFrame(rows)
