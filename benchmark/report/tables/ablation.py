"""The ablation, step by step: what each part of the last loss adds to the one before."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.report.tables import TABLES
from benchmark.report.tables.labels import loss_label
from benchmark.report.tables.numbers import known, percent
from benchmark.report.tables.table import Cell, Column, Table, text_column
from benchmark.report.tables.tests_of_pairs import (
    SHARED_CAPTION,
    family_note,
    sections_of,
    test_cells,
    test_columns,
    tests_of,
)


@TABLES.register("ablation", display="Ablation")
def build(runs: pd.DataFrame, stats: dict[str, pd.DataFrame], study: Any) -> Table:
    """Returns per batch size the steps of the study's ablation and their total, each with its test."""
    found = tests_of(stats, "ablation", "ablation")
    names = [loss_label(label, study) for label in study.comparison.ablation]

    columns = [
        text_column("Step"),
        Column(("From",), parts=("mean",)),
        Column(("To",), parts=("mean",)),
        *test_columns(study),
    ]
    caption = (
        f"Steps {' → '.join(names)}. Means are in percent over the common seeds. {SHARED_CAPTION}"
    )
    sections = sections_of(found, study, lambda row: _row(row, study))
    return Table("Ablation", caption, columns, sections, [family_note(found, study)])


def _row(row: Any, study: Any) -> list[Cell]:
    text = f"{loss_label(row.against, study)} → {loss_label(row.loss, study)}"
    before, after = known(row.mean_against), known(row.mean)
    return [
        Cell(f"{text} (total)" if str(row.step) == "total" else text),
        Cell(percent(before), numbers=(before,)),
        Cell(percent(after), numbers=(after,)),
        *test_cells(row, "gain", "loss"),
    ]
