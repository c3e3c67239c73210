"""What tables and figures show beside tests: learning curves, best epochs, differences, costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchmark.stats.paired import PLACE
from benchmark.stats.runs import scores

CURVE_COLUMNS = [*PLACE, "loss", "epoch", "n", "mean", "sd"]
BEST_EPOCH_COLUMNS = [
    *PLACE, "loss", "n", "last", "last_sd", "best", "best_sd", "difference", "epoch",
]  # fmt: skip
DIFFERENCE_COLUMNS = [*PLACE, "loss", "against", "seed", "value", "value_against", "difference"]
COST_COLUMNS = [
    "dataset", "setting", "batch_size", "loss", "n", "train_seconds", "images_per_second",
    "loss_ms", "loss_ms_minimum", "loss_ms_maximum", "loss_share", "peak_gpu_mb", "peak_rss_mb",
]  # fmt: skip
_MEASURED = ("train_seconds", "images_per_second", "loss_ms", "peak_gpu_mb", "peak_rss_mb")


def learning_curves(runs: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Return the mean over seeds after each evaluated epoch, of the first metric with values."""
    curves = runs[
        (runs["status"] == "ok") & (runs["selection"] == "curve") & np.isfinite(runs["value"])
    ]
    measured = set(curves["metric"])
    headline = next((metric for metric in metrics if metric in measured), None)
    groups = curves[curves["metric"] == headline].groupby([*PLACE, "loss", "epoch"])["value"]
    table = groups.agg(n="count", mean="mean", sd="std").reset_index()
    return table.astype({"epoch": int}).reindex(columns=CURVE_COLUMNS)


def best_epochs(runs: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Return the scores of the last epoch and of the best test epoch, over the runs with both.

    ``difference`` is the mean of best - last; ``epoch`` is the mean best epoch.
    """
    keys = [*PLACE, "loss", "seed"]
    last, best = (scores(runs, selection, list(metrics)) for selection in ("last", "best"))
    both = last[[*keys, "value"]].merge(
        best[[*keys, "value", "epoch"]], on=keys, suffixes=("_last", "_best")
    )
    both["difference"] = both["value_best"] - both["value_last"]
    table = both.groupby([*PLACE, "loss"]).agg(
        n=("difference", "size"),
        last=("value_last", "mean"),
        last_sd=("value_last", "std"),
        best=("value_best", "mean"),
        best_sd=("value_best", "std"),
        difference=("difference", "mean"),
        epoch=("epoch", "mean"),
    )
    return table.reset_index().reindex(columns=BEST_EPOCH_COLUMNS)


def differences_by_seed(headline: pd.DataFrame, baseline: str | None) -> pd.DataFrame:
    """Return the difference to the baseline of each run that has a run of it with the same seed.

    ``headline`` is one row per run and metric (``benchmark.stats.runs.scores``).
    """
    keys = [*PLACE, "seed"]
    against = headline.loc[headline["loss"] == baseline, [*keys, "value"]]
    others = headline[headline["loss"] != baseline]
    table = others.merge(against, on=keys, suffixes=("", "_against")).assign(against=baseline)
    table["difference"] = table["value"] - table["value_against"]
    return table.sort_values([*PLACE, "loss", "seed"]).reindex(columns=DIFFERENCE_COLUMNS)


def costs(runs: pd.DataFrame) -> pd.DataFrame:
    """Return what training cost, means over the finished runs of a cell.

    ``loss_share`` is the time of the loss over the time of a step (batch size / images per second).
    """
    rows = runs[
        (runs["selection"] == "cost") & (runs["status"] == "ok") & np.isfinite(runs["value"])
    ]
    cell = ["dataset", "setting", "batch_size", "loss"]
    if rows.empty:
        return pd.DataFrame(columns=COST_COLUMNS)
    by_run = rows.pivot_table(index=[*cell, "seed"], columns="metric", values="value")
    by_run = by_run.reindex(columns=list(_MEASURED))
    cells = by_run.groupby(level=cell)
    table = cells.mean().assign(
        n=cells.size(),
        loss_ms_minimum=cells["loss_ms"].min(),
        loss_ms_maximum=cells["loss_ms"].max(),
    )
    table = table.reset_index()
    step_ms = 1000 * table["batch_size"] / table["images_per_second"]
    table["loss_share"] = table["loss_ms"] / step_ms
    return table.reindex(columns=COST_COLUMNS)
