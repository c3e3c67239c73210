"""What papers' tables and figures show of a study: computed, written, and read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from benchmark.core.csv_file import guess_csv
from benchmark.core.errors import RunError
from benchmark.core.files import write_json
from benchmark.core.record_files import read_record
from benchmark.papers.candidates import candidates
from benchmark.papers.printed.cells import PrintedCell, TableCells
from benchmark.papers.printed.figures import FigureMarks, figure_marks
from benchmark.papers.printed.gap import GapDecrease, gap_decreases
from benchmark.papers.printed.grid import Grid
from benchmark.papers.printed.sweeps import SweptValue, swept_values
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
        for name, records in zip(FILES, asdict(self).values(), strict=True):
            write_json(folder / name, records)
        return [folder / name for name in FILES]

    @classmethod
    def read(cls, folder: Path) -> Printed:
        """Return what was written below a study's results; raise RunError for another file."""
        told = ("what papers print", f"papers {folder.name}")
        return cls(
            read_record(tuple[PrintedCell, ...], folder / TABLES, *told),
            read_record(tuple[FigureMarks, ...], folder / FIGURES, *told),
            read_record(tuple[SweptValue, ...], folder / SWEEPS, *told),
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
    if not path.is_file():
        advice = f"run 'python -m benchmark verdicts {study.name}'"
        raise RunError(f"{path} does not exist: {advice}")
    return guess_csv(path)
