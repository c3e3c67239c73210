"""Last epoch beside best test epoch: how much the papers' own selection rule flatters each loss."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.report.tables import TABLES
from benchmark.report.tables.labels import (
    group_label,
    loss_label,
    loss_order,
    metric_label,
    metric_order,
)
from benchmark.report.tables.numbers import known, mean_sd, percent, plain, points
from benchmark.report.tables.select import GROUP, scores
from benchmark.report.tables.table import Cell, Column, Section, Table, text_column


@TABLES.register("best_epoch", display="Last epoch and best test epoch")
def build(runs: pd.DataFrame, stats: dict[str, pd.DataFrame], study: Any) -> Table:
    """Returns per loss and metric the headline value, the best-epoch value and their mean difference."""
    last, best = scores(runs, study, "last"), scores(runs, study, "best")
    keys = [*GROUP, "loss", "seed", "metric"]
    both = last[[*keys, "value"]].merge(
        best[[*keys, "value", "epoch"]], on=keys, suffixes=("_last", "_best")
    )
    columns = [
        text_column("Loss"),
        text_column("Metric"),
        Column(("Last epoch (headline)",), parts=("mean", "sd")),
        Column(("Best test epoch (selected on test)",), parts=("mean", "sd")),
        Column(("Difference",), parts=("mean",)),
        Column(("Mean best epoch",), parts=("mean",)),
        Column(("n",), parts=("runs",)),
    ]
    both = both.assign(gap=both["value_best"] - both["value_last"])
    found = both.groupby([*GROUP, "loss", "metric"], observed=True).agg(
        last=("value_last", "mean"),
        last_sd=("value_last", "std"),
        best=("value_best", "mean"),
        best_sd=("value_best", "std"),
        gap=("gap", "mean"),
        epoch=("epoch", "mean"),
        runs=("gap", "size"),
    )
    losses = loss_order(both["loss"].unique(), study)
    metrics = metric_order(both["metric"].unique(), study)
    found = found.reset_index()
    found["of_loss"] = found["loss"].astype(str).map(losses.index)
    found["of_metric"] = found["metric"].astype(str).map(metrics.index)
    rows = found.sort_values([*GROUP, "of_loss", "of_metric"])
    sections: dict[str, list[list[Cell]]] = {}
    for row in rows.itertuples():
        title = group_label(row.dataset, row.setting, row.batch_size, row.split)
        sections.setdefault(title, []).append(_row(row, study))
    caption = (
        "Scores in percent, mean ± standard deviation over seeds. The best test epoch is chosen per metric on the "
        "test data itself, as the papers' code does; it is shown for comparison and never used for a headline number."
    )
    filled = [Section(title, cells) for title, cells in sections.items()]
    return Table("Last epoch and best test epoch", caption, columns, filled)


def _row(row: Any, study: Any) -> list[Cell]:
    return [
        Cell(loss_label(row.loss, study)),
        Cell(metric_label(row.metric)),
        Cell(mean_sd(row.last, row.last_sd), numbers=(known(row.last), known(row.last_sd))),
        Cell(mean_sd(row.best, row.best_sd), numbers=(known(row.best), known(row.best_sd))),
        Cell(points(row.gap) if round(row.gap, 4) else percent(0), numbers=(known(row.gap),)),
        Cell(plain(row.epoch, 1), numbers=(known(row.epoch),)),
        Cell(str(row.runs), numbers=(row.runs,)),
    ]
