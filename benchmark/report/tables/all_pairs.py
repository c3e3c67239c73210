"""Every loss against every other."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.report.tables import TABLES
from benchmark.report.tables.labels import loss_label
from benchmark.report.tables.table import Cell, Table, text_column
from benchmark.report.tables.tests_of_pairs import (
    SHARED_CAPTION,
    family_note,
    sections_of,
    test_cells,
    test_columns,
    tests_of,
)


@TABLES.register("all_pairs", display="Paired tests of all pairs")
def build(runs: pd.DataFrame, stats: dict[str, pd.DataFrame], study: Any) -> Table:
    """Returns the tests of all pairs of losses; positive means that the first is better."""
    found = tests_of(stats, "paired", "pairs")
    names = {label: loss_label(label, study) for label in {*found["loss"], *found["against"]}}

    def row_of(row: Any) -> list[Cell]:
        return [
            Cell(names[row.loss]),
            Cell(names[row.against]),
            *test_cells(row, "first higher", "second higher"),
        ]

    caption = f"First loss minus second. {SHARED_CAPTION}"
    columns = [text_column("First"), text_column("Second"), *test_columns(study)]
    sections = sections_of(found, study, row_of)
    return Table(
        "Paired tests of all pairs", caption, columns, sections, [family_note(found, study)]
    )
