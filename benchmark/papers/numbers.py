"""What papers print: numbers (``results.csv``), and how tables and figures follow from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from benchmark.core.documents import whole_number
from benchmark.metrics.metric import metric_of
from benchmark.papers.reading import Closed, Distinct
from benchmark.stats.judgement import NUMBER
from benchmark.study.data_files import REPRODUCIBLE

# Factor from the printed unit to percentage points; other units are no scores.
SCORE_UNITS = {"percent": 1.0, "fraction": 100.0}
GAIN = "_relative_increase"  # of a metric, over the same loss without its calibration
BATCH_SIZE = "batch_size"  # an x that no hyperparameter sets


def _conditions(value: str) -> dict[str, str]:
    """Return {"tau": "0.1", "p": "4"} of the text "tau=0.1;p=4"."""
    pairs = [part.partition("=") for part in value.split(";") if part]
    if not all(key and word for key, _, word in pairs):
        raise ValueError(f"'{value}' is not of the form key=value;key=value")
    if len({key for key, _, _ in pairs}) < len(pairs):
        raise ValueError(f"'{value}' gives a condition twice")
    return {key: word for key, _, word in pairs}


def _printed(value: Any) -> Any:
    """Return the text of a number as papers print it; 0e999 is one of too large a last digit."""
    if isinstance(value, str) and not NUMBER.fullmatch(value.strip()):
        raise ValueError("Input should be a valid decimal of at most 20 digits")
    return value


def _counted(value: Any) -> Any:
    """Return the text of a whole number of digits alone: 1_0 and 64.0 are not counts."""
    if isinstance(value, str) and whole_number(value) is None:
        raise ValueError("Input should be a valid whole number of at most 18 digits")
    return value


def _embedding_sizes(value: Any) -> Any:
    if value and not re.fullmatch(r"[1-9]\d{0,5}(/[1-9]\d{0,5})*", value, re.ASCII):
        raise ValueError("a size is a whole number from 1 to 999999, or several such as 512/64")
    return value


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
# A table, figure or version of a paper: part of the names of files.
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,79}$")]
Size = Annotated[int, Field(ge=1, lt=10**9, strict=True)]  # of a batch, of an embedding
_EMPTY_AS_NONE = BeforeValidator(lambda value: None if value == "" else value)
MaybeNumber = Annotated[
    Annotated[float, Field(ge=0, lt=1e12), BeforeValidator(_printed)] | None,
    _EMPTY_AS_NONE,
]
MaybeCount = Annotated[
    Annotated[int, Field(ge=1, lt=10**9), BeforeValidator(_counted)] | None,
    _EMPTY_AS_NONE,
]


@dataclass(frozen=True)
class PublishedNumber:
    """The columns of ``results.csv``; from ``line`` on, what follows from them and the folder.

    provenance  who obtained it: the paper's method, another one trained by its authors, another
                paper
    conditions  what the row states beyond its columns; {condition: word} of the vocabulary
    line        in the file
    source      the paper and its version: "roadmap2021v2"
    loss        the suite's name of the method
    means       what the row means without stating it (``implied.yaml``, and the method itself)
    outside     why no study covers it, or ""
    """

    table: Name
    row_label: str
    method: Text
    provenance: Literal["own", "retrained", "copied", "unclear"]
    dataset: str
    protocol: str
    backbone: str
    embedding_dim: Annotated[str, BeforeValidator(_embedding_sizes)]
    batch_size: MaybeCount
    conditions: Annotated[Mapping[str, str], BeforeValidator(_conditions)]
    metric: Text
    value: Annotated[Decimal, BeforeValidator(_printed), Field(ge=0)]
    std: MaybeNumber
    n_runs: MaybeCount
    unit: Literal[
        "percent", "fraction", "count", "thousand", "hours", "days", "minutes", "min_per_epoch",
        "ms", "GiB", "factor", "p_value",
    ]  # fmt: skip
    comment: str
    line: int
    version: str = ""
    source: str = ""
    loss: str = ""
    means: Mapping[str, str] = field(default_factory=dict)
    outside: str = ""

    @property
    def is_score(self) -> bool:
        """Whether it is a recall or (m)AP of a whole test set, which a verdict can judge."""
        return self.unit in SCORE_UNITS and metric_of(self.metric) is not None

    @property
    def reproducible(self) -> bool:
        """Whether the paper's authors trained what it is measured on."""
        return self.provenance in REPRODUCIBLE

    @property
    def countable(self) -> bool:
        """Whether studies are to cover it: of a printed table, and reproducible."""
        return self.reproducible and self.table.startswith("table")

    @property
    def judged(self) -> bool:
        """Whether a verdict judges it, be it of a table, a figure or running text."""
        return self.reproducible and (self.is_score or self.metric.endswith(GAIN))

    @property
    def points(self) -> float:
        """The score in percentage points."""
        return float(self.value) * SCORE_UNITS[self.unit]

    @property
    def sd_points(self) -> float | None:
        """The printed spread in percentage points."""
        return None if self.std is None else self.std * SCORE_UNITS[self.unit]

    @property
    def rounding(self) -> float:
        """Half a unit of the last printed digit, in percentage points: 0.05 for "81.2"."""
        return 0.5 * 10.0**-self.digits * SCORE_UNITS[self.unit]

    @property
    def text(self) -> str:
        """The value with the digits of its print, in percentage points if it is a score."""
        if not self.is_score:
            return f"{float(self.value):g}"
        return f"{self.points:.{max(0, self.digits - (2 if self.unit == 'fraction' else 0))}f}"

    @property
    def digits(self) -> int:
        """The number of printed digits behind the point."""
        exponent = self.value.as_tuple().exponent
        return -exponent if isinstance(exponent, int) else 0

    def field(self, name: str) -> str:
        """Return a column, or a stated condition, as text; "" where there is none."""
        value = getattr(self, name) if name in COLUMNS else self.conditions.get(name)
        return "" if value is None else str(value)

    def fits(self, rows: Mapping[str, Any]) -> bool:
        """Return whether each named column has the value, or one of the values."""
        return all(
            self.field(name) in map(str, values if isinstance(values, list | tuple) else [values])
            for name, values in rows.items()
        )


# What chooses and arranges rows, besides the conditions that they state.
_FOLLOWING = ("line", "means", "outside", "conditions")
COLUMNS = tuple(each.name for each in fields(PublishedNumber) if each.name not in _FOLLOWING)
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
