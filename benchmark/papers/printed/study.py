"""What papers' tables and figures show of a study: computed, written, and read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benchmark.core.errors import RunError
from benchmark.core.paths import open_regular
from benchmark.papers.candidates import candidates
from benchmark.papers.printed.cells import PrintedCell, TableCells
from benchmark.papers.printed.figures import FigureMarks, figure_marks
from benchmark.papers.printed.gap import GapDecrease, gap_decreases
from benchmark.papers.printed.grid import Grid
from benchmark.papers.printed.sweeps import SweptValue, swept_values
from benchmark.papers.stored import read_records, write_records
from benchmark.runs.table import RunTable
from benchmark.stats.looks import at_level
from benchmark.study import Study

TABLES, FIGURES, SWEEPS = FILES = (
    "papers/tables.json",
    "papers/figures.json",
    "papers/sweeps.json",
)
VERDICTS, VERDICTS_OTHER = "verdicts.csv", "verdicts_other.csv"


@dataclass(frozen=True)
class Printed:
    """The cells of printed tables, the marks of figures, and the values of sweeps."""

    cells: tuple[PrintedCell, ...] = ()
    figures: tuple[FigureMarks, ...] = ()
    sweeps: tuple[SweptValue, ...] = ()

    def write(self, folder: Path) -> list[Path]:
        """Write one file each below a study's results; return their paths."""
        parts = {TABLES: self.cells, FIGURES: self.figures, SWEEPS: self.sweeps}
        for name, records in parts.items():
            write_records(folder / name, records)
        return [folder / name for name in parts]

    @classmethod
    def read(cls, folder: Path) -> Printed:
        """Return what was written below a study's results; raise RunError for another file."""
        return cls(
            tuple(read_records(folder / TABLES, PrintedCell)),
            tuple(read_records(folder / FIGURES, FigureMarks)),
            tuple(read_records(folder / SWEEPS, SweptValue)),
        )


def compute_printed(study: Study, results: Path) -> Printed:
    """Return what papers' tables and figures show of a study whose verdicts have been written."""
    folder = study.folder(results)
    verdicts, other = (_read(folder / name, study) for name in (VERDICTS, VERDICTS_OTHER))
    return printed_of(
        at_level(study), RunTable.read(folder), verdicts, other, gap_decreases(folder)
    )


def printed_of(
    study: Study,
    table: RunTable,
    verdicts: pd.DataFrame,
    other: pd.DataFrame,
    gaps: Sequence[GapDecrease] = (),
) -> Printed:
    """Return the same from runs, verdicts at both readings of the epoch, and analysed gaps."""
    cells = candidates(study)
    grid = Grid(study, table, cells)
    tables = TableCells(study, table, cells, verdicts, other, gaps)
    return Printed(tuple(tables.all()), tuple(figure_marks(grid)), tuple(swept_values(grid)))


def _read(path: Path, study: Study) -> pd.DataFrame:
    try:
        with open_regular(path) as stream:
            return pd.read_csv(stream, keep_default_na=False, na_values=[""])
    except (OSError, ValueError) as error:
        advice = f"write it with 'python -m benchmark verdicts {study.name}'"
        raise RunError(f"{path} cannot be read ({error}); {advice}") from error
