"""How sure each score is: over seeds, over queries, by the epoch, and how often there is none."""

from typing import Any

from benchmark.report.inputs import DIVERGENCE_CELL, Inputs
from benchmark.report.labels import confidence, metric_label
from benchmark.report.numbers import DASH, interval, mean_sd, percent, plain, points
from benchmark.report.pairs import by_condition, is_true, loss_cell, loss_field
from benchmark.report.table import (
    Column,
    NothingToShow,
    Table,
    TableCell,
    filled,
    grouped,
    number_cell,
    numbers,
    text_column,
    words,
)
from benchmark.report.tables import TABLES

UNCERTAINTY = "How sure the scores are"


@TABLES.register("uncertainty", display=UNCERTAINTY)
def uncertainty(inputs: Inputs) -> Table:
    """Return per loss and metric the mean, both intervals, and the rate of divergence."""
    rates, study = inputs.divergence, inputs.study
    if rates.empty or "selection" not in inputs.summary:
        raise NothingToShow("no run of this study has ended yet")
    last = inputs.summary[inputs.summary["selection"] == "last"].drop(columns="n_diverged")
    rows = rates.merge(last, on=[*DIVERGENCE_CELL], how="left")
    rows["split"] = rows["split"].fillna("test")  # of losses that diverged under every seed
    sure = confidence(study)
    columns = [
        text_column("Loss"),
        text_column("Metric"),
        Column(("Mean",), parts=("mean",)),
        Column((f"{sure} over seeds",), parts=("low", "high", "n")),
        Column((f"{sure} over classes",), parts=("low", "high", "classes", "queries")),
        Column(("Runs that diverged",), parts=("runs", "of", "low", "high")),
    ]
    caption = (
        "Scores in percent at the last epoch. Over seeds: had the networks been trained again (t "
        "interval of the mean). Over classes: had other classes been tested with these networks "
        "(bootstrap that draws whole classes of queries). Neither contains the other. A dash: one "
        "seed, or runs from before the scores of queries were kept. Divergence: the rate with its "
        "exact interval (Clopper and Pearson 1934); a loss diverges where significantly more than "
        "one run of ten does, and then it loses its comparisons."
    )
    cells = (
        (where, [loss_cell(row.loss, study), *_cells(row)])
        for where, row in by_condition(rows, study)
    )
    return Table(UNCERTAINTY, caption, columns, grouped(cells))


def _cells(row: Any) -> list[TableCell]:
    counts = f"{int(row.n_diverged)} of {int(row.n_ended)}"
    rate = f"{counts} ({plain(100 * row.low, 0)} to {plain(100 * row.high, 0)}%)"
    numbers = (float(row.n_diverged), float(row.n_ended), float(row.low), float(row.high))
    bad = is_true(row.diverges)
    diverged = TableCell(rate, numbers=numbers, tone="bad" if bad else "")
    if not isinstance(row.metric, str):
        return [TableCell("no score", tone="bad"), *[TableCell(DASH)] * 3, diverged]
    return [
        TableCell(metric_label(row.metric)),
        number_cell(percent, row.mean),
        number_cell(_interval, row.ci_low, row.ci_high, row.n),
        number_cell(_interval, row.query_low, row.query_high, row.classes, row.queries),
        diverged,
    ]


def _interval(low: Any, high: Any, *_: Any) -> str:
    return interval(low, high, percent)


EPOCHS = "Last epoch and best test epoch"


@TABLES.register("best_epoch", display=EPOCHS)
def best_epoch(inputs: Inputs) -> Table:
    """Return per loss and metric the headline value, the best-epoch value and their difference."""
    study = inputs.study
    fields = [
        loss_field(study),
        words("Metric", lambda row: TableCell(metric_label(row.metric))),
        numbers("Last epoch (headline)", mean_sd, mean="last", sd="last_sd"),
        numbers("Best test epoch (selected on test)", mean_sd, mean="best", sd="best_sd"),
        numbers("Difference", _gain, mean="difference"),
        numbers("Mean best epoch", lambda epoch: plain(epoch, 1), mean="epoch"),
        numbers("n", str, runs="n"),
    ]
    caption = (
        "Scores in percent, mean ± standard deviation over seeds. The best test epoch is chosen "
        "per metric on the test data itself, as the papers' code does; it is shown for comparison "
        "and never used for a headline number."
    )
    return filled(EPOCHS, caption, fields, by_condition(inputs.some("best_epoch"), study))


def _gain(difference: float) -> str:
    return points(difference) if round(difference, 4) else percent(difference)
