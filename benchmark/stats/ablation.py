"""The ablation, step by step, and the relative gain of its last step per batch size."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchmark.stats.intervals import t_interval
from benchmark.stats.paired import GROUP, by_seed, tested


def ablation_steps(
    scores: pd.DataFrame, ablation: Sequence[str], alpha: float = 0.05
) -> pd.DataFrame:
    """Return the paired test of each loss of ``ablation`` against its predecessor, and a total."""
    links = list(zip(ablation[1:], ablation, strict=False))
    if len(links) > 1:
        links.append((ablation[-1], ablation[0]))
    table = by_seed(scores)
    losses = table.index.get_level_values("loss")
    pairs, steps = [], []
    for _, rows in sorted(table.groupby(level=GROUP).indices.items()):
        present = {losses[row]: row for row in rows}
        for number, (loss, against) in enumerate(links, start=1):
            if loss in present and against in present:
                pairs.append(("ablation", present[loss], present[against]))
                steps.append("total" if number == len(ablation) else str(number))
    return tested(table, pairs, alpha).assign(step=steps)


def relative_gain(
    scores: pd.DataFrame, loss: str, against: str, alpha: float = 0.05
) -> pd.DataFrame:
    """Return the gain of ``loss`` over ``against`` in percent of the latter, per group.

    ``gain`` is the mean over seeds of 100 (a - b) / b with its t interval; ``gain_of_means`` is
    100 (mean a - mean b) / mean b, the figure that papers print. Seeds where b is zero are dropped.
    """
    table = by_seed(scores[scores["loss"].isin([loss, against])])
    rows = []
    for key, group in table.groupby(level=GROUP):
        by_loss = group.droplevel([*GROUP])
        if loss not in by_loss.index or against not in by_loss.index:
            continue
        a, b = by_loss.loc[loss].to_numpy(float), by_loss.loc[against].to_numpy(float)
        usable = np.isfinite(a) & (b > 0)
        a, b = a[usable], b[usable]
        gain = t_interval(100 * (a - b) / b, 1 - alpha)
        rows.append(
            {
                **dict(zip(GROUP, key, strict=True)),
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
