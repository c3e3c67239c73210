"""Last epoch beside best test epoch: how much the papers' own selection rule flatters each loss."""

from __future__ import annotations

from typing import Any

from benchmark.report.inputs import Inputs
from benchmark.report.labels import metric_label
from benchmark.report.numbers import mean_sd, percent, plain, points
from benchmark.report.pairs import by_condition
from benchmark.report.render.table import (
    Column,
    NothingToShow,
    Table,
    TableCell,
    number_cell,
    text_column,
)
from benchmark.report.tables import TABLES


@TABLES.register("best_epoch", display="Last epoch and best test epoch")
def build(inputs: Inputs) -> Table:
    """Return per loss and metric the headline value, the best-epoch value and their difference."""
    table, study = inputs.best_epoch, inputs.study
    if table.empty:
        raise NothingToShow("no finished run has a value of the study's metrics yet")
    columns = [
        text_column("Loss"),
        text_column("Metric"),
        Column(("Last epoch (headline)",), parts=("mean", "sd")),
        Column(("Best test epoch (selected on test)",), parts=("mean", "sd")),
        Column(("Difference",), parts=("mean",)),
        Column(("Mean best epoch",), parts=("mean",)),
        Column(("n",), parts=("runs",)),
    ]
    caption = (
        "Scores in percent, mean ± standard deviation over seeds. The best test epoch is chosen "
        "per metric on the test data itself, as the papers' code does; it is shown for comparison "
        "and never used for a headline number."
    )
    title, sections = "Last epoch and best test epoch", by_condition(table, study, _cells)
    return Table(title, caption, columns, sections)


def _cells(row: Any) -> list[TableCell]:
    return [
        TableCell(metric_label(row.metric)),
        number_cell(mean_sd, row.last, row.last_sd),
        number_cell(mean_sd, row.best, row.best_sd),
        number_cell(points if round(row.difference, 4) else percent, row.difference),
        number_cell(lambda epoch: plain(epoch, 1), row.epoch),
        number_cell(str, row.n),
    ]
