"""Measurements with their targets, and how they are written: CSV files and one Markdown report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from benchmark.core.files import write_text

Row = dict[str, Any]


@dataclass(frozen=True)
class Target:
    """A measured number and its bound.

    what      what is bounded; of several targets with one ``what`` the worst is shown
    at_least  whether the bound is a minimum (of a speed) or a maximum (of a cost)
    where     which of several measurements this is
    """

    what: str
    value: float
    bound: float
    unit: str
    at_least: bool = False
    where: str = ""

    @property
    def met(self) -> bool:
        """Whether the value keeps the bound; NaN keeps none."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    @property
    def text(self) -> str:
        """The bound in words."""
        return f"{'at least' if self.at_least else 'at most'} {self.bound:g} {self.unit}".rstrip()

    @property
    def margin(self) -> float:
        """The value over the bound, or its inverse: 1 and more keeps it."""
        return self.value / self.bound if self.at_least else self.bound / max(self.value, 1e-12)


@dataclass(frozen=True)
class Measurement:
    """One row of a table, and the targets of its numbers."""

    row: Row
    targets: Sequence[Target] = ()


@dataclass(frozen=True)
class Section:
    """A part of the report: measurements with equal columns.

    note     how they were measured, and what is left out
    group    column by which the Markdown is divided into tables
    """

    name: str
    title: str
    note: str
    measurements: Sequence[Measurement]
    group: str | None = None

    @property
    def rows(self) -> list[Row]:
        """The rows; ``target`` and ``met`` are columns as soon as one of them has targets."""
        judged = any(measurement.targets for measurement in self.measurements)
        return [_judged(one) if judged else one.row for one in self.measurements]

    @property
    def targets(self) -> list[Target]:
        """All targets, those of one ``what`` together."""
        targets = (target for one in self.measurements for target in one.targets)
        return sorted(targets, key=lambda target: target.what)

    def write_csv(self, folder: Path) -> Path:
        """Write ``<name>.csv`` and return its path."""
        path = folder / f"{self.name}.csv"
        write_text(path, pd.DataFrame(self.rows).to_csv(index=False))
        return path

    def markdown(self) -> str:
        """Return the section with its tables in Markdown."""
        parts = [f"## {self.title}", self.note]
        for value, rows in groupby(self.rows, key=lambda row: row.get(self.group or "")):
            parts += [] if self.group is None else [f"### {self.group} {value:,}"]
            parts.append(self._table(list(rows)))
        return "\n\n".join(parts) + "\n"

    def _table(self, rows: list[Row]) -> str:
        columns = [name for name in rows[0] if name != self.group]
        lines = [columns, ["---"] * len(columns)]
        lines += [[_text(row[name]) for name in columns] for row in rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def targets_section(sections: Sequence[Section]) -> list[Section]:
    """Return a section with the worst measurement of each target, or nothing without targets."""
    measurements = []
    for section in sections:
        for what, group in groupby(section.targets, key=lambda target: target.what):
            worst = min(group, key=lambda target: target.margin)
            row = {"part": section.name, "what": what, "measured": worst.value}
            measurements.append(Measurement({**row, "where": worst.where}, [worst]))
    met = sum(measurement.targets[0].met for measurement in measurements)
    note = f"{met} of {len(measurements)} met. Of several measurements the worst is shown."
    return [Section("targets", "Targets", note, measurements)] if measurements else []


def write_report(sections: Sequence[Section], folder: Path, head: str) -> Path:
    """Write each section's CSV, and ``bench.md`` with ``head`` and all of them; return its path."""
    for section in sections:
        section.write_csv(folder)
    parts = [f"# Benchmark\n\n{head}\n", *(section.markdown() for section in sections)]
    write_text(folder / "bench.md", "\n".join(parts))
    return folder / "bench.md"


def load() -> float:
    """Return the mean number of running processes of the last minute, NaN if unknown."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def _judged(measurement: Measurement) -> Row:
    targets = measurement.targets
    met = "yes" if all(target.met for target in targets) else "no"
    return {
        **measurement.row,
        "target": "; ".join(target.text for target in targets) or None,
        "met": met if targets else None,
    }


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)
