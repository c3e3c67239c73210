"""The sweeps as one table: every swept setting beside the default of its sweep, with what the papers say about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import pandas as pd

from benchmark.papers.printed.study import Printed
from benchmark.papers.printed.sweeps import SweptValue
from benchmark.report.tables.labels import confidence, loss_label, metric_label
from benchmark.report.tables.numbers import DASH, count, known, mean_sd
from benchmark.report.tables.table import Cell, Column, Section, Table, text_column
from benchmark.report.tables.tests_of_pairs import test_cells, test_columns
from benchmark.study import Study

NAME = "sweeps"
TITLE = "The sweeps in numbers"
_SHOWN, DETECTABLE = (
    (0, 1, 2, 4),
    6,
)  # of the cells of a test; shown are difference, interval, outcome, p after Holm


def sweep_tables(printed: Printed, claims: pd.DataFrame, study: Study) -> dict[str, Table]:
    """Return {"sweeps": table} for a study that sweeps and has finished runs of some sweep."""
    return {NAME: _table(printed.sweeps, claims, study)} if printed.sweeps else {}


def _table(values: Sequence[SweptValue], claims: pd.DataFrame, study: Study) -> Table:
    here = claims[claims["reading"] == "here"] if len(claims) else claims
    verdicts = dict(zip(here["claim"], here["verdict"], strict=True)) if len(here) else {}
    columns = [
        Column(("Value",), numeric=False, words=("of option",)),
        Column(("Score",), parts=("mean", "sd", "n")),
        *(test_columns(study)[index] for index in _SHOWN),
        text_column("Claims, and whether they hold here"),
        test_columns(study)[DETECTABLE],
    ]
    most = max(each.score_n for each in values)
    sections = []
    for title, group in groupby(values, key=lambda each: each.title):
        part = list(group)
        first = part[0]
        swept = title if first.option in title else f"{title} ({first.option})"
        heading = [swept, metric_label(first.metric)]
        heading += [] if first.batch_size is None else [f"batch size {first.batch_size}"]
        told = "; ".join(
            f"{name}: {verdicts[name].replace('_', ' ')}"
            for name in first.claims
            if name in verdicts
        )
        rows = [
            _row(row, most, told if number == 0 else "", study) for number, row in enumerate(part)
        ]
        sections.append(Section(" · ".join(heading), rows))
    caption = (
        f"Test scores in percent at the last epoch, mean ± standard deviation over n = {most} seeds (other n is "
        "noted). Differences are to the default setting of the sweep, paired by seed, in percentage points with their "
        f"{confidence(study)} interval; p is that of the two-sided paired t-test after Holm's correction. Detectable: "
        "the smallest true difference that this many seeds would have shown with probability 0.8."
    )
    notes = [
        f"Holm families at level {study.comparison.alpha:g}: the settings of one sweep each, "
        f"{count(len(sections), 'sweep')} with {count(sum(each.p_holm is not None for each in values), 'test')}."
    ]
    return Table(TITLE, caption, columns, sections, notes)


def _row(row: SweptValue, most: int, told: str, study: Study) -> list[Cell]:
    n = row.score_n
    score = Cell(
        mean_sd(row.score, row.score_sd),
        note="" if n == most else f"n={n}",
        numbers=(known(row.score), known(row.score_sd), n),
    )
    if row.is_default:
        test = [Cell("default", tone="muted"), Cell(DASH, numbers=(None, None)), Cell(DASH)]
        test += [Cell(DASH, numbers=(None,))]
        detectable = Cell(DASH, numbers=(None,))
    else:
        cells = test_cells(row)
        test = [replace(cells[0], note=row.note), *(cells[index] for index in _SHOWN[1:])]
        detectable = cells[DETECTABLE]
    value = row.value or f"{loss_label(row.loss, study)} alone"
    return [Cell(value, words=(row.option,)), score, *test, Cell(told), detectable]
