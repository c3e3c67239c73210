"""What a table is before it becomes CSV, Markdown, LaTeX or HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


class NothingToShow(Exception):  # noqa: N818 (a reason, not an error)
    """A table or figure has no data; the message says what is missing, for the page to repeat."""


@dataclass(frozen=True)
class Line:
    """A further line below the text of a cell, in smaller type; ``tone`` as in Cell."""

    text: str
    tone: str = ""


@dataclass(frozen=True)
class Cell:
    """One cell.

    text     what a person reads, plain Unicode: "85.2 ± 0.3"
    mark     "best" (bold), "second" (underlined) or ""
    note     a short remark in smaller type: "n=4"
    numbers  the full-precision values behind the text, one per part of the column
    tone     "good", "bad", "unsure" or "muted": a colour on the page, always beside a word
    lines    what stands below the text: the published value, the verdict
    words    the words among them that the CSV carries, one per entry of the column's ``words``
    """

    text: str
    mark: str = ""
    note: str = ""
    numbers: tuple[float | None, ...] = ()
    tone: str = ""
    lines: tuple[Line, ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Column:
    """One column: header levels from top to bottom, and the numbers and words that its CSV columns carry."""

    header: tuple[str, ...]
    parts: tuple[str, ...] = ()
    numeric: bool = True
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """Rows under one heading; a table without headings has one section with an empty title."""

    title: str
    rows: list[list[Cell]]


@dataclass(frozen=True)
class Table:
    """A table ready to be rendered; all rows have one cell per column."""

    title: str
    caption: str
    columns: list[Column]
    sections: list[Section]
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        widths = {len(row) for section in self.sections for row in section.rows}
        if widths - {len(self.columns)}:
            raise ValueError(
                f"'{self.title}': {len(self.columns)} columns, but rows of {sorted(widths)} cells"
            )

    @property
    def rows(self) -> int:
        """The number of rows over all sections."""
        return sum(len(section.rows) for section in self.sections)

    @property
    def levels(self) -> int:
        """The number of header rows."""
        return max(len(column.header) for column in self.columns)

    def header_rows(self) -> list[list[tuple[str, int]]]:
        """Returns per header row the (text, span) of its cells; equal neighbours are merged above the last row."""
        padded = [("",) * (self.levels - len(c.header)) + c.header for c in self.columns]
        found = []
        for level in range(self.levels):
            row: list[tuple[str, int]] = []
            for index, names in enumerate(padded):
                joins = (
                    level < self.levels - 1
                    and index
                    and padded[index - 1][: level + 1] == names[: level + 1]
                )
                if joins:
                    row[-1] = (row[-1][0], row[-1][1] + 1)
                else:
                    row.append((names[level], 1))
            found.append(row)
        return found


def text_column(*header: str) -> Column:
    """Returns a left-aligned column of words."""
    return Column(header, numeric=False)


def capped(table: Table, limit: int) -> tuple[Table, int]:
    """Returns the table with at most ``limit`` rows and how many were left out."""
    left, sections = limit, []
    for section in table.sections:
        if left <= 0:
            break
        sections.append(Section(section.title, section.rows[:left]))
        left -= len(section.rows)
    hidden = max(0, table.rows - limit)
    return Table(table.title, table.caption, table.columns, sections, table.notes), hidden


def marks(values: Sequence[float | None], *, higher_is_better: bool = True) -> list[str]:
    """Returns "best", "second" or "" per value; equal values share a mark, a lone value gets none."""
    known = sorted({value for value in values if value is not None}, reverse=higher_is_better)
    if sum(value is not None for value in values) < 2:
        return [""] * len(values)
    names = dict(zip(known[:2], ("best", "second"), strict=False))
    return [names.get(value, "") if value is not None else "" for value in values]
