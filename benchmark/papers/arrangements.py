"""How a paper's printed tables and figures follow from its numbers and from our runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from benchmark.papers.numbers import PublishedNumber, Size
from benchmark.papers.reading import Closed, Distinct

BATCH_SIZE = "batch_size"  # an x that no hyperparameter sets
Columns = Annotated[tuple[str, ...], Field(min_length=1), Distinct]


@dataclass(frozen=True)
class PrintedTable(Closed):
    """One printed table: the columns of ``results.csv`` that make its sections, rows and columns.

    read_as     {column: {printed value: the value it is arranged under}}
    """

    title: str
    rows: Columns
    columns: Columns
    sections: Annotated[tuple[str, ...], Distinct] = ()
    read_as: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def read(self, number: PublishedNumber, column: str) -> str:
        """Return the value of a column that a number is arranged under."""
        value = number.field(column)
        return self.read_as.get(column, {}).get(value, value)


@dataclass(frozen=True)
class FootnoteRule(Closed):
    """Rows of the table ``at`` that another table, "paper/table", prints with other values."""

    at: str
    also: str
    where: Mapping[str, str] = field(default_factory=dict)
    also_where: Mapping[str, str] = field(default_factory=dict)
    text: str = ""


@dataclass(frozen=True)
class TestSet(Closed):
    """Where a line of a figure is measured.

    dataset   label of our runs
    split     of our runs; empty means the only test split
    printed   dataset of the published numbers beside it, where it is not ``dataset``
    protocol  of the published numbers
    """

    __test__ = False  # not a test of pytest's
    dataset: str
    split: str = ""
    printed: str = ""
    protocol: str = ""


@dataclass(frozen=True)
class PrintedValues(Closed):
    """Published numbers beside a panel: their table, and their x where it is a hyperparameter."""

    table: str
    at: Annotated[float, Field(allow_inf_nan=False)] | None = None


@dataclass(frozen=True)
class Panel(Closed):
    """One panel; which fields count depends on the kind of its figure.

    x           "batch_size", a condition of the vocabulary, a hyperparameter, or the difference of
    two
    words       names of the places on an axis of words, in order
    default     the x that the others are compared with; None: recipe and loss as they stand
    """

    title: str
    loss: str
    metric: str
    backbone: str
    test_sets: Annotated[tuple[TestSet, ...], Field(min_length=1), Distinct]
    x: str = ""
    label: str = ""
    scale: Literal["linear", "log"] = "linear"
    batch_size: Size | None = None
    baseline: str = ""
    published: PrintedValues | None = None
    loss_against: str = ""
    parameter: str = ""
    first: str = ""
    second: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    claims: tuple[str, ...] = ()
    default: Any = None


@dataclass(frozen=True)
class Figure(Closed):
    """One figure. ``name`` is that of its files, ``source`` the paper that prints it, or ""."""

    title: str
    kind: Literal["sweep", "gain", "convergence", "effect"]
    studies: tuple[str, ...]
    panels: Annotated[tuple[Panel, ...], Field(min_length=1)]
    name: str = ""
    source: str = ""


NEEDED = {  # keys of a panel by kind of figure
    "sweep": ("x",),
    "gain": ("loss_against",),
    "convergence": (),
    "effect": ("parameter", "first", "second"),
}
