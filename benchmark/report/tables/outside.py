"""Published numbers of a study's papers that no study trains, each with the reason."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.papers.references import countable_results
from benchmark.report.tables import TABLES
from benchmark.report.tables.papers.arrangement import place
from benchmark.report.tables.table import Cell, Column, NothingToShow, Section, Table, text_column


@TABLES.register("outside", display="Published numbers outside of every study")
def build(runs: pd.DataFrame, stats: dict[str, pd.DataFrame], study: Any) -> Table:
    """Returns one row per printed table and reason; only for papers that the study covers as a whole."""
    numbers = countable_results()
    papers = [name for name in study.references.published if name in set(numbers["paper"])]
    found = numbers[numbers["paper"].isin(papers) & (numbers["outside"] != "")]
    if not papers:
        raise NothingToShow(
            "the study covers no paper as a whole, so none of its numbers can be left out"
        )
    if found.empty:
        raise NothingToShow("every number that its authors trained belongs to a run of some study")
    rows = [
        [Cell(place(*key[:2])), Cell(str(len(part)), numbers=(len(part),)), Cell(key[2])]
        for key, part in found.groupby(["paper", "table", "outside"], sort=False)
    ]
    total = int(numbers["paper"].isin(papers).sum())
    return Table(
        "Published numbers outside of every study",
        f"{len(found)} of the {total} numbers that the authors of these papers trained themselves have no run here.",
        [text_column("Printed in"), Column(("Numbers",), parts=("count",)), text_column("Reason")],
        [Section("", rows)],
    )
