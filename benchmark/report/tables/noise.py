"""Where the spread between runs comes from: the share of each source of chance."""

from typing import Any

from benchmark.report.inputs import Inputs, records
from benchmark.report.labels import condition_label, confidence, metric_label
from benchmark.report.numbers import count, interval, percent
from benchmark.report.pairs import loss_cell
from benchmark.report.render.table import (
    Column,
    NothingToShow,
    Table,
    TableCell,
    grouped,
    number_cell,
    text_column,
)
from benchmark.report.tables import TABLES

NONE = (
    "no source of noise was varied apart: that needs a block with 'noise_square' whose runs have "
    "all finished"
)


@TABLES.register("noise", display="Sources of noise")
def build(inputs: Inputs) -> Table:
    """Return per loss and metric the spread and the share of each source."""
    data, study = inputs.noise, inputs.study
    if data.empty:
        raise NothingToShow(NONE)
    rows = (
        (_heading(row), [loss_cell(row.loss, study), TableCell(row.source), *_numbers(row)])
        for row in records(data)
        if row.metric in study.metrics
    )
    columns = [
        text_column("Loss"),
        text_column("Source"),
        Column(("Spread, points",), parts=("sd",)),
        Column(("Share of the variance",), parts=("share",)),
        Column((f"{confidence(study)} interval",), parts=("low", "high")),
    ]
    caption = (
        "Runs of a Latin square: each source of chance has seeds of its own, and every value of "
        "one meets every value of each other once. Spread: standard deviation that the source "
        "alone adds to the score of a run. Interaction: what a seed does only together with the "
        "others. Shares are in percent of the variance of a run; intervals are generalised ones "
        "(Weerahandi 1993), and wide, because a square has few values of each source."
    )
    return Table("Sources of noise", caption, columns, grouped(rows))


def _heading(row: Any) -> str:
    where = condition_label(row.dataset, row.setting, row.split, row.batch_size)
    return f"{metric_label(row.metric)} · {where} · {count(row.runs, 'run')}"


def _numbers(row: Any) -> list[TableCell]:
    def whole(value: Any) -> str:
        return percent(value, 0)

    return [
        number_cell(percent, row.sd),
        number_cell(whole, row.share),
        number_cell(lambda low, high: interval(low, high, whole), row.low, row.high),
    ]
