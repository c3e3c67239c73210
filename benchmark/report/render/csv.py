"""Table -> CSV with full precision: a column per number or word behind a cell, sections first."""

import csv
import io
import re
from itertools import chain

from benchmark.report.render.table import Column, Table, TableCell

_HARMLESS = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?\Z|(?![=+\-@\t\r])")


def to_csv(table: Table) -> str:
    """Return the CSV text; scores stay in [0, 1], absent numbers are empty."""
    sectioned = any(section.title for section in table.sections)
    rows = [row for section in table.sections for row in section.rows]
    noted = [
        bool(column.parts) and any(cell.note or not cell.numbers for cell in cells)
        for column, *cells in zip(table.columns, *rows, strict=True)
    ]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    names = [_names(*each) for each in zip(table.columns, noted, strict=True)]
    writer.writerow([*["section"] * sectioned, *chain.from_iterable(names)])
    for section in table.sections:
        for row in section.rows:
            fields = [section.title] * sectioned
            for column, note, cell in zip(table.columns, noted, row, strict=True):
                fields.extend(_fields(column, note, cell))
            writer.writerow(map(as_text, fields))
    return stream.getvalue()


def as_text(words: str) -> str:
    """Return words that no spreadsheet takes for a formula; numbers stay as they are."""
    return words if _HARMLESS.match(words) else f"'{words}"


def _names(column: Column, noted: bool) -> list[str]:
    name = " ".join(part for part in column.header if part)
    names = [f"{name} {part}".strip() for part in (*column.parts, *column.words)]
    names = names if column.parts else [name, *names]
    return [*names, f"{name} note"] if noted else names


def _fields(column: Column, noted: bool, cell: TableCell) -> list[str]:
    words = [*(cell.words or ("",) * len(column.words))]
    if not column.parts:
        return [cell.text, *words]
    numbers = cell.numbers or (None,) * len(column.parts)
    fields = ["" if number is None else f"{number:.10g}" for number in numbers] + words
    # A cell without numbers says why in words ("missing"), which belongs into the note.
    return [*fields, cell.note if cell.numbers else cell.text] if noted else fields
