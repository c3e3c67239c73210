"""Published numbers of a study's papers that no study trains, each with the reason."""

from __future__ import annotations

from collections import Counter

from benchmark.papers.library import cite, countable_numbers
from benchmark.report.inputs import Inputs
from benchmark.report.render.table import (
    Column,
    NothingToShow,
    Section,
    Table,
    TableCell,
    number_cell,
    text_column,
)
from benchmark.report.tables import TABLES

TITLE = "Published numbers outside of every study"


@TABLES.register("outside", display=TITLE)
def build(inputs: Inputs) -> Table:
    """Return one row per printed table and reason; only for papers that the study covers whole."""
    published = inputs.study.references.published
    numbers = [each for each in countable_numbers() if each.source in published]
    if not numbers:
        raise NothingToShow(
            "the study covers no paper as a whole, so none of its numbers can be left out"
        )
    found = Counter((each.source, each.table, each.outside) for each in numbers if each.outside)
    if not found:
        raise NothingToShow("every number that its authors trained belongs to a run of some study")
    rows = [
        [TableCell(cite(source, table)), number_cell(str, left_out), TableCell(reason)]
        for (source, table, reason), left_out in found.items()
    ]
    caption = (
        f"{found.total()} of the {len(numbers)} numbers that the authors of these papers trained "
        "themselves have no run here."
    )
    columns = [text_column("Printed in"), Column(("Numbers",), ("count",)), text_column("Reason")]
    return Table(TITLE, caption, columns, [Section("", rows)])
