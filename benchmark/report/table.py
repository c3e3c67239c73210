"""What a table is before it becomes CSV, Markdown, LaTeX or HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from benchmark.core.words import finite

if TYPE_CHECKING:  # ``judge`` shows its answer without pandas
    import pandas as pd

TONES = {
    **dict.fromkeys(("reproduced", "supported", "ok", "identical", "agree"), "good"),
    **dict.fromkeys(("drifted", "contradicted", "diverged", "failed", "differ"), "bad"),
    **dict.fromkeys(("inconclusive", "stale", "undecided"), "unsure"),
    **dict.fromkeys(("not_run", "not_asked", "missing"), "muted"),
}


class NothingToShow(Exception):  # noqa: N818 (a reason, not an error)
    """A table or figure has no data; the message is the reason, for the page to repeat."""


@dataclass(frozen=True)
class Line:
    """A further line below the text of a cell, in smaller type; ``tone`` as in TableCell."""

    text: str
    tone: str = ""


@dataclass(frozen=True)
class TableCell:
    """One cell of a table: plain Unicode for people, and the full-precision numbers behind it.

    mark   "best" (bold), "second" (underlined), "own" (a challenger, whose row is lit) or ""
    note   a short remark in smaller type: "n=4"
    tone   "good", "bad", "unsure" or "muted": a colour on the page, always beside a word
    lines  what stands below the text: the published value, the verdict
    words  the texts that the CSV has beside the numbers, one per entry of the column's ``words``
    title  what the page shows of it on demand
    """

    text: str
    mark: str = ""
    note: str = ""
    numbers: tuple[float | None, ...] = ()
    tone: str = ""
    lines: tuple[Line, ...] = ()
    words: tuple[str, ...] = ()
    title: str = ""


@dataclass(frozen=True)
class Column:
    """One column: header from top to bottom, parts in the CSV, and what makes its cell of a row.

    ``paged``: whether the page shows it; all other files have it in any case.
    """

    header: tuple[str, ...]
    parts: tuple[str, ...] = ()
    numeric: bool = True
    words: tuple[str, ...] = ()
    cell: Callable[[Any], TableCell] = TableCell
    paged: bool = True


@dataclass(frozen=True)
class Section:
    """Rows under one heading; a table without headings has one section with an empty title."""

    title: str
    rows: list[list[TableCell]]


@dataclass(frozen=True)
class Table:
    """A table ready to be rendered; all rows have one cell per column.

    On the page, columns of numbers beyond ``across`` come below the others, and only the first
    ``opened`` sections are open.
    """

    title: str
    caption: str
    columns: list[Column]
    sections: list[Section]
    notes: list[str] = field(default_factory=list)
    across: int | None = None
    opened: int | None = None

    @property
    def rows(self) -> int:
        """Return the number of rows over all sections."""
        return sum(len(section.rows) for section in self.sections)

    def header_rows(self) -> list[list[tuple[str, int]]]:
        """Return (text, span) of each header row; equal neighbours merge, but not in the last."""
        levels = max(len(column.header) for column in self.columns)
        padded = [("",) * (levels - len(each.header)) + each.header for each in self.columns]
        rows = []
        for level in range(1, levels):
            merged = groupby(names[:level] for names in padded)
            rows.append([(head[-1], len([*same])) for head, same in merged])
        return [*rows, [(names[-1], 1) for names in padded]]


def text_column(*header: str) -> Column:
    """Return a left-aligned column of words."""
    return Column(header, numeric=False)


def words(header: str, cell: Callable[[Any], str | TableCell]) -> Column:
    """Return a left-aligned column of words with what makes a cell, or its text, of a row."""

    def made(row: Any) -> TableCell:
        content = cell(row)
        return TableCell(content) if isinstance(content, str) else content

    return Column((header,), numeric=False, cell=made)


def numbers(header: str, form: Callable[..., str], *attribute: str, **parts: str) -> Column:
    """Return a column of numbers with the text ``form`` of the row's attributes.

    ``parts`` are {name of a column in the CSV: attribute}; a lone ``attribute`` adds no name.
    """
    names = ("",) * len(attribute) + tuple(parts)
    attributes = (*attribute, *parts.values())

    def cell(row: Any) -> TableCell:
        return number_cell(form, *(getattr(row, name) for name in attributes))

    return Column((header,), names, cell=cell)


def number_cell(form: Callable[..., str], *values: Any, **options: Any) -> TableCell:
    """Return a cell with the text ``form(*values)`` that keeps the values behind it."""
    return TableCell(form(*values), numbers=tuple(map(finite, values)), **options)


def filled(
    title: str,
    caption: str,
    columns: Sequence[Column],
    rows: Iterable[tuple[str, Any]],
    notes: Iterable[str] = (),
) -> Table:
    """Return the table of (title of the section, row) pairs, whose cells the columns make."""
    made = []
    for section, row in rows:
        made.append((section, [column.cell(row) for column in columns]))
    return Table(title, caption, [*columns], grouped(made), [*notes])


def grouped(rows: Iterable[tuple[str, list[TableCell]]]) -> list[Section]:
    """Return one section per title from (title, row) pairs, in the order of the first of each."""
    sections: dict[str, list[list[TableCell]]] = {}
    for title, row in rows:
        sections.setdefault(title, []).append(row)
    return [Section(title, lines) for title, lines in sections.items()]


def marks(values: pd.Series) -> pd.Series:
    """Return "best", "second" or "" per value; equal values share a mark, a lone value has none."""
    names = {}
    if values.count() > 1:
        names = {1: "best", 2: "second"}
    ranks = values.rank(method="dense", ascending=False)
    return ranks.map(lambda rank: names.get(rank, ""))
