"""Where the spread between runs comes from: the share of each source of chance."""

from typing import Any

from benchmark.report.inputs import Inputs, records
from benchmark.report.labels import condition_label, confidence, metric_label
from benchmark.report.numbers import count, interval, percent
from benchmark.report.pairs import loss_field
from benchmark.report.table import Table, TableCell, filled, numbers, words
from benchmark.report.tables import TABLES


@TABLES.register("noise", display="Sources of noise")
def build(inputs: Inputs) -> Table:
    """Return per loss and metric the spread and the share of each source."""
    data, study = inputs.some("noise"), inputs.study
    fields = [
        loss_field(study),
        words("Source", lambda row: TableCell(row.source)),
        numbers("Spread, points", percent, sd="sd"),
        numbers("Share of the variance", _share, share="share"),
        numbers(f"{confidence(study)} interval", _shares, low="low", high="high"),
    ]
    caption = (
        "Runs of a Latin square: each source of chance has seeds of its own, and every value of "
        "one meets every value of each other once. Spread: standard deviation that the source "
        "alone adds to the score of a run. Interaction: what a seed does only together with the "
        "others. Shares are in percent of the variance of a run; intervals are generalised ones "
        "(Weerahandi 1993), and wide, because a square has few values of each source."
    )
    rows = ((_heading(row), row) for row in records(data) if row.metric in study.metrics)
    return filled("Sources of noise", caption, fields, rows)


def _heading(row: Any) -> str:
    where = condition_label(row.dataset, row.setting, row.split, row.batch_size)
    return f"{metric_label(row.metric)} · {where} · {count(row.runs, 'run')}"


def _share(value: Any) -> str:
    return percent(value, 0)


def _shares(low: Any, high: Any) -> str:
    return interval(low, high, _share)
