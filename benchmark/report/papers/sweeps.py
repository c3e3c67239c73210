"""The sweeps as one table: each value beside the default of its sweep, with papers' claims."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import pandas as pd

from benchmark.papers.printed.sweeps import SweptValue
from benchmark.report.inputs import Inputs, records
from benchmark.report.labels import confidence, loss_label, metric_label
from benchmark.report.numbers import DASH, count, mean_sd, words_of
from benchmark.report.pairs import test_fields
from benchmark.report.table import Column, Field, Section, Table, TableCell, text_column
from benchmark.study import Study

NAME = "sweeps"
TITLE = "The sweeps in numbers"
# Of the cells of a test: difference, interval, outcome and p after Holm.
_SHOWN, _DETECTABLE = (0, 1, 2, 4), 6


def sweep_tables(inputs: Inputs) -> dict[str, Table]:
    """Return {"sweeps": table} for a study that sweeps and has finished runs of some sweep."""
    sweeps = inputs.printed.sweeps
    return {NAME: _table(sweeps, inputs.claims, inputs.study)} if sweeps else {}


def _table(values: Sequence[SweptValue], claims: pd.DataFrame, study: Study) -> Table:
    verdicts = {row.claim: row.verdict for row in records(claims) if row.reading == "here"}
    tests = test_fields(study)
    columns = [
        Column(("Value",), numeric=False, words=("of option",)),
        Column(("Score",), parts=("mean", "sd", "n")),
        *(tests[index].column for index in _SHOWN),
        text_column("Claims, and what this study says of them"),
        tests[_DETECTABLE].column,
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
            f"{name}: {words_of(verdicts[name])}" for name in first.claims if name in verdicts
        )
        rows = [
            _row(row, most, tests, told if number == 0 else "", study)
            for number, row in enumerate(part)
        ]
        sections.append(Section(" · ".join(heading), rows))
    caption = (
        f"Test scores in percent at the last epoch, mean ± standard deviation over n = {most} "
        "seeds (other n is noted). Differences are to the default setting of the sweep, paired by "
        f"seed, in percentage points with their {confidence(study)} interval; p is that of the "
        "two-sided paired t-test after Holm's correction. Detectable: the smallest true difference "
        "that this many seeds would have shown with probability 0.8."
    )
    number = sum(each.p_holm is not None for each in values)
    notes = [
        f"Holm families at level {study.comparison.alpha:g}: the settings of one sweep each, "
        f"{count(len(sections), 'sweep')} with {count(number, 'test')}."
    ]
    return Table(TITLE, caption, columns, sections, notes)


def _row(
    row: SweptValue, most: int, tests: list[Field], told: str, study: Study
) -> list[TableCell]:
    n = row.score_n
    score = TableCell(
        mean_sd(row.score, row.score_sd),
        note="" if n == most else f"n={n}",
        numbers=(row.score, row.score_sd, n),
    )
    if row.is_default:
        one, two = (TableCell(DASH, numbers=(None,) * parts) for parts in (1, 2))
        test = [TableCell("default", tone="muted"), two, TableCell(DASH), one]
        detectable = one
    else:
        difference, *others = (tests[index].cell(row) for index in _SHOWN)
        test = [replace(difference, note=row.note), *others]
        detectable = tests[_DETECTABLE].cell(row)
    value = row.value or f"{loss_label(row.loss, study)} alone"
    return [TableCell(value, words=(row.option,)), score, *test, TableCell(told), detectable]
