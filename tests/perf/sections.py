"""What one part of the benchmark found, and how it is written: a CSV file and a Markdown table."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmark.core.files import write_text
from perf.targets import Target

Row = dict[str, Any]


@dataclass(frozen=True)
class Section:
    """Rows of equal columns. ``group`` names the column by which the Markdown shows a table each; ``shown`` the
    columns it has (empty: all); ``note`` says how the rows were measured and what they leave out; ``targets`` are
    the bounds that numbers in the rows are to keep."""

    name: str
    title: str
    note: str
    rows: list[Row]
    group: str | None = None
    shown: tuple[str, ...] = ()
    targets: tuple[Target, ...] = ()

    def write_csv(self, folder: Path) -> Path:
        """Writes ``<name>.csv`` and returns its path."""
        stream = io.StringIO()
        writer = csv.DictWriter(stream, fieldnames=list(self.rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        path = Path(folder) / f"{self.name}.csv"
        write_text(path, stream.getvalue())
        return path

    def markdown(self) -> str:
        """Returns the section with its tables in Markdown."""
        parts = [f"## {self.title}", self.note]
        if self.group is None:
            parts.append(self._table(self.rows))
        else:
            for value, rows in groupby(self.rows, key=lambda row: row[self.group]):
                parts += [f"### {self.group} {value:,}", self._table(list(rows))]
        return "\n\n".join(parts) + "\n"

    def _table(self, rows: list[Row]) -> str:
        columns = [name for name in self.shown or rows[0] if name != self.group]
        lines = [
            columns,
            ["---"] * len(columns),
            *([_text(row[name]) for name in columns] for row in rows),
        ]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_all(sections: Iterable[Section], folder: Path, head: str) -> Path:
    """Writes every section's CSV, and ``bench.md`` with ``head`` and all of them; returns the path of the latter."""
    sections = list(sections)
    for section in sections:
        section.write_csv(folder)
    path = Path(folder) / "bench.md"
    write_text(
        path, "\n".join([f"# Benchmark\n\n{head}\n", *(section.markdown() for section in sections)])
    )
    return path


def load() -> float:
    """Returns the processes that wanted a processor in the last minute, on average; NaN where nothing counts them."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)
