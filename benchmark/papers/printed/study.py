"""What papers' tables and figures show of a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from benchmark.core.files import write_json
from benchmark.papers.candidates import candidates
from benchmark.papers.printed.cells import PrintedCell, TableCells
from benchmark.papers.printed.figures import FigureMarks, figure_marks
from benchmark.papers.printed.gap import GapDecrease
from benchmark.papers.printed.grid import Grid
from benchmark.papers.printed.sweeps import SweptValue, swept_values
from benchmark.runs.table import RunTable
from benchmark.study import Study


@dataclass(frozen=True)
class Printed:
    """The cells of printed tables, the marks of figures, and the values of sweeps."""

    cells: tuple[PrintedCell, ...] = ()
    figures: tuple[FigureMarks, ...] = ()
    sweeps: tuple[SweptValue, ...] = ()

    def write(self, folder: Path) -> None:
        """Write one file each below a study's results."""
        for name, records in zip(
            ("tables", "figures", "sweeps"), asdict(self).values(), strict=True
        ):
            write_json(folder / "papers" / f"{name}.json", records)


def printed_of(
    study: Study,
    table: RunTable,
    verdicts: pd.DataFrame,
    other: pd.DataFrame,
    gaps: Sequence[GapDecrease] = (),
) -> Printed:
    """Return them from runs, verdicts at both readings of the epoch, and analysed gaps."""
    cells = candidates(study)
    grid = Grid(study, table, cells)
    tables = TableCells(study, table, cells, verdicts, other, gaps)
    return Printed(tuple(tables.all()), tuple(figure_marks(grid)), tuple(swept_values(grid)))
