"""Last epoch beside best test epoch: how much the papers' own selection rule flatters each loss."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.tables import TABLES
from benchmark.tables.labels import group_label, loss_label, loss_order, metric_label, metric_order
from benchmark.tables.numbers import known, mean_sd, percent, plain, points
from benchmark.tables.select import GROUP, groups, scores
from benchmark.tables.table import Cell, Column, Section, Table, text_column


@TABLES.register("best_epoch", display="Last epoch and best test epoch")
def build(runs: pd.DataFrame, stats: dict[str, pd.DataFrame], study: Any) -> Table:
    """Returns per loss and metric the headline value, the best-epoch value and their mean difference."""
    last, best = scores(runs, study, "last"), scores(runs, study, "best")
    keys = [*GROUP, "loss", "seed", "metric"]
    both = last[[*keys, "value"]].merge(best[[*keys, "value", "epoch"]], on=keys, suffixes=("_last", "_best"))
    columns = [
        text_column("Loss"),
        text_column("Metric"),
        Column(("Last epoch (headline)",), parts=("mean", "sd")),
        Column(("Best test epoch (selected on test)",), parts=("mean", "sd")),
        Column(("Difference",), parts=("mean",)),
        Column(("Mean best epoch",), parts=("mean",)),
        Column(("n",), parts=("runs",)),
    ]
    sections = []
    for (dataset, setting, split, batch_size), part in groups(both, GROUP):
        rows = []
        for loss in loss_order(part["loss"], study):
            of_loss = part[part["loss"] == loss]
            for metric in metric_order(of_loss["metric"].unique(), study):
                rows.append(_row(loss_label(loss, study), metric, of_loss[of_loss["metric"] == metric]))
        sections.append(Section(group_label(dataset, setting, batch_size, split), rows))
    caption = (
        "Scores in percent, mean ± standard deviation over seeds. The best test epoch is chosen per metric on the "
        "test data itself, as the papers' code does; it is shown for comparison and never used for a headline number."
    )
    return Table("Last epoch and best test epoch", caption, columns, sections)


def _row(loss: str, metric: str, values: pd.DataFrame) -> list[Cell]:
    last, best = values["value_last"], values["value_best"]
    gap = (best - last).mean()
    epoch = values["epoch"].mean()
    return [
        Cell(loss),
        Cell(metric_label(metric)),
        Cell(mean_sd(last.mean(), last.std()), numbers=(known(last.mean()), known(last.std()))),
        Cell(mean_sd(best.mean(), best.std()), numbers=(known(best.mean()), known(best.std()))),
        Cell(points(gap) if round(gap, 4) else percent(0), numbers=(known(gap),)),
        Cell(plain(epoch, 1), numbers=(known(epoch),)),
        Cell(str(len(values)), numbers=(len(values),)),
    ]
