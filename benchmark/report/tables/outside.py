"""Published numbers of a study's papers that no study trains, each with the reason."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pandas as pd

from benchmark.papers.library import cite, countable_numbers
from benchmark.report.tables import TABLES
from benchmark.report.tables.table import Cell, Column, NothingToShow, Section, Table, text_column


@TABLES.register("outside", display="Published numbers outside of every study")
def build(runs: pd.DataFrame, stats: dict[str, pd.DataFrame], study: Any) -> Table:
    """Returns one row per printed table and reason; only for papers that the study covers as a whole."""
    published = study.references.published
    numbers = [each for each in countable_numbers() if each.source in published]
    if not numbers:
        raise NothingToShow(
            "the study covers no paper as a whole, so none of its numbers can be left out"
        )
    found = Counter((each.source, each.table, each.outside) for each in numbers if each.outside)
    if not found:
        raise NothingToShow("every number that its authors trained belongs to a run of some study")
    rows = [
        [Cell(cite(source, table)), Cell(str(left_out), numbers=(left_out,)), Cell(reason)]
        for (source, table, reason), left_out in found.items()
    ]
    return Table(
        "Published numbers outside of every study",
        f"{found.total()} of the {len(numbers)} numbers that the authors of these papers trained "
        "themselves have no run here.",
        [text_column("Printed in"), Column(("Numbers",), parts=("count",)), text_column("Reason")],
        [Section("", rows)],
    )
