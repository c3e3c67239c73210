"""What tables and figures show beside tests: learning curves, best epochs, differences, costs."""

from collections.abc import Sequence

import pandas as pd

from benchmark.runs.table import RunTable
from benchmark.stats.paired import GROUP

DIFFERENCE_COLUMNS = [*GROUP, "loss", "against", "seed", "value", "value_against", "difference"]
COST_COLUMNS = [
    "dataset", "setting", "batch_size", "loss", "n", "train_seconds", "images_per_second",
    "loss_ms", "loss_ms_minimum", "loss_ms_maximum", "loss_share", "peak_gpu_mb", "peak_rss_mb",
]  # fmt: skip
_MEASURED = ("train_seconds", "images_per_second", "loss_ms", "peak_gpu_mb", "peak_rss_mb")


def learning_curves(table: RunTable, metrics: Sequence[str]) -> pd.DataFrame:
    """Return the mean over seeds after each evaluated epoch, of the first metric with values."""
    curves = table.test_scores("curve")
    measured = set(curves["metric"])
    headline = next((metric for metric in metrics if metric in measured), None)
    groups = curves[curves["metric"] == headline].groupby([*GROUP, "loss", "epoch"])["value"]
    means = groups.agg(n="count", mean="mean", sd="std").reset_index()
    return means.astype({"epoch": int})


def best_epochs(table: RunTable, metrics: Sequence[str]) -> pd.DataFrame:
    """Return the scores of the last epoch and of the best test epoch, over the runs with both.

    ``difference`` is the mean of best - last; ``epoch`` is the mean best epoch.
    """
    keys = [*GROUP, "loss", "seed"]
    last, best = (table.test_scores(selection, metrics) for selection in ("last", "best"))
    both = last[[*keys, "value"]].merge(
        best[[*keys, "value", "epoch"]], on=keys, suffixes=("_last", "_best")
    )
    both["difference"] = both["value_best"] - both["value_last"]
    means = both.groupby([*GROUP, "loss"]).agg(
        n=("difference", "size"),
        last=("value_last", "mean"),
        last_sd=("value_last", "std"),
        best=("value_best", "mean"),
        best_sd=("value_best", "std"),
        difference=("difference", "mean"),
        epoch=("epoch", "mean"),
    )
    return means.reset_index()


def differences_by_seed(headline: pd.DataFrame, baseline: str | None) -> pd.DataFrame:
    """Return the difference to the baseline of each run that has a run of it with the same seed.

    ``headline`` is one row per run and metric (``RunTable.test_scores``).
    """
    keys = [*GROUP, "seed"]
    against = headline.loc[headline["loss"] == baseline, [*keys, "value"]]
    others = headline[headline["loss"] != baseline]
    table = others.merge(against, on=keys, suffixes=("", "_against")).assign(against=baseline)
    table["difference"] = table["value"] - table["value_against"]
    return table.sort_values([*GROUP, "loss", "seed"]).reindex(columns=DIFFERENCE_COLUMNS)


def costs(table: RunTable) -> pd.DataFrame:
    """Return what training cost, means over the finished runs of a cell that took a step.

    ``loss_share`` is the time of the loss over the time of a step (images of a batch / images per
    second).
    """
    cell = ["dataset", "setting", "batch_size", "loss"]
    runs = table.costs()
    cells = runs[runs["images_per_second"] > 0].groupby(cell)
    means = (
        cells[list(_MEASURED)]
        .mean()
        .assign(
            n=cells.size(),
            loss_ms_minimum=cells["loss_ms"].min(),
            loss_ms_maximum=cells["loss_ms"].max(),
        )
    )
    # a batch of triplets has more images than its size says
    images = cells["images_backward"].sum(min_count=1) / cells["updates"].sum(min_count=1)
    means = means.assign(images=images).reset_index()
    images = means["images"].fillna(means["batch_size"])
    step_ms = 1000 * images / means["images_per_second"]
    means["loss_share"] = means["loss_ms"] / step_ms
    return means.reindex(columns=COST_COLUMNS)
