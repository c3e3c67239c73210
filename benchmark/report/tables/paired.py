"""Every loss against the baseline."""

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


@TABLES.register("paired", display="Paired tests against the baseline")
def build(runs: pd.DataFrame, stats: dict[str, pd.DataFrame], study: Any) -> Table:
    """Returns the tests of each loss against the study's baseline; positive means better than it."""
    found = tests_of(stats, "paired", "baseline")
    baseline = loss_label(found["against"].iloc[0], study)
    caption = f"Each loss minus {baseline}. {SHARED_CAPTION}"
    sections = sections_of(
        found, study, lambda row: [Cell(loss_label(row.loss, study)), *test_cells(row)]
    )
    columns = [text_column("Loss"), *test_columns(study)]
    return Table(
        f"Paired tests against {baseline}", caption, columns, sections, [family_note(found, study)]
    )
