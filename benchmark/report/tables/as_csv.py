"""Table -> CSV with full precision: one column per number or word behind a cell, sections as a first column."""

from __future__ import annotations

import csv
import io

from benchmark.report.tables.table import Cell, Column, Table


def to_csv(table: Table) -> str:
    """Returns the CSV text; scores stay in [0, 1], absent numbers are empty."""
    sectioned = any(section.title for section in table.sections)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    noted = [_noted(table, index) for index in range(len(table.columns))]
    head = ["section"] if sectioned else []
    for column, note in zip(table.columns, noted, strict=True):
        head.extend(_names(column, note))
    writer.writerow(head)
    for section in table.sections:
        for row in section.rows:
            fields = [section.title] if sectioned else []
            for column, note, cell in zip(table.columns, noted, row, strict=True):
                fields.extend(_fields(column, note, cell))
            writer.writerow(fields)
    return stream.getvalue()


def _noted(table: Table, index: int) -> bool:
    """Returns whether a column needs a CSV column for remarks, or for words in place of its numbers."""
    cells = (row[index] for section in table.sections for row in section.rows)
    return bool(table.columns[index].parts) and any(cell.note or not cell.numbers for cell in cells)


def _names(column: Column, noted: bool) -> list[str]:
    name = " ".join(part for part in column.header if part)
    names = [f"{name} {part}".strip() for part in (*column.parts, *column.words)]
    names = names if column.parts else [name, *names]
    return [*names, f"{name} note"] if noted else names


def _fields(column: Column, noted: bool, cell: Cell) -> list[str]:
    if not column.parts:
        return [cell.text, *(cell.words or ("",) * len(column.words))]
    numbers = cell.numbers or (None,) * len(column.parts)
    fields = ["" if number is None else f"{number:.10g}" for number in numbers]
    fields += cell.words or ("",) * len(column.words)
    # A cell without numbers says why in words ("missing"), which belongs into the note.
    return [*fields, cell.note if cell.numbers else cell.text] if noted else fields
