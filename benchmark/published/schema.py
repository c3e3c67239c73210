"""The rows of a paper's files, with what each field means; pydantic checks every value.

``docs/papers.md`` describes the files. Fields without a column or key of their file follow from the
folder and are set where it is loaded (``benchmark.published.loading``).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from fnmatch import fnmatch
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints
from pydantic_core import PydanticKnownError

from benchmark.core.documents import YamlError, parse_yaml
from benchmark.metrics.metric import metric_of
from benchmark.published.quantities import COUNTS
from benchmark.published.vocabulary import (
    EMBEDDING_DIM,
    Closed,
    Requirement,
    TableKind,
    Vocabulary,
    Words,
    split_suffix,
)
from benchmark.stats.judgement import NUMBER
from benchmark.study.data_files import REPRODUCIBLE

# Factor from the printed unit to percentage points. Numbers with other units are not scores.
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
        raise PydanticKnownError("decimal_parsing")
    return value


def _counted(value: Any) -> Any:
    """Return the text of a whole number of digits alone: 1_0 and 64.0 are not counts."""
    if isinstance(value, str) and not (value.isascii() and value.isdigit()):
        raise PydanticKnownError("int_parsing")
    return value


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    seen: set[str | float] = set()
    for value in values:
        text = str(value)
        try:
            key: str | float = float(text)
        except ValueError:
            key = text
        if key in seen:
            raise ValueError(f"{getattr(value, 'name', text)} comes twice; keep one")
        seen.add(key)
    return values


Distinct = AfterValidator(_distinct)  # numbers are told apart by value
Names = Annotated[tuple[str, ...], Field(min_length=1), Distinct]
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
    kind        what it is, and how our value of it is measured
    elsewhere   the figure or section that prints it, or "": a table
    means       what the row means without stating it (``implied.yaml``, and the method itself)
    assumes     what of that may move a score by more than 0.3 points: "batch_size (unknown)"
    outside     why no study covers it, or ""
    required    what the row states and means, as runs have to meet it
    """

    table: Name
    row_label: str
    method: Text
    provenance: Literal["own", "retrained", "copied", "unclear"]
    dataset: str
    protocol: str
    backbone: str
    embedding_dim: str = field(
        metadata={
            "pattern": r"^([1-9][0-9]{0,5}(/[1-9][0-9]{0,5})*)?$",
            "description": "a whole number from 1 to 999999, or several such as 512/64",
        }
    )
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
    line: int = 0
    version: str = ""
    source: str = ""
    loss: str = ""
    means: Mapping[str, str] = field(default_factory=dict)
    assumes: tuple[str, ...] = ()
    outside: str = ""
    kind: TableKind = field(default_factory=TableKind)
    elsewhere: str = ""
    required: tuple[Requirement, ...] = ()

    @property
    def is_score(self) -> bool:
        """Whether it is a recall or (m)AP of a whole test set, in percentage points."""
        return self.unit in SCORE_UNITS and metric_of(self.metric) is not None

    @property
    def reproducible(self) -> bool:
        """Whether the paper's authors trained what it is measured on."""
        return self.provenance in REPRODUCIBLE

    @property
    def countable(self) -> bool:
        """Whether studies are to cover it: of a printed table, and reproducible."""
        return self.reproducible and not self.elsewhere

    @property
    def judged(self) -> bool:
        """Whether a verdict judges it, be it of a table, a figure or running text."""
        return self.kind.judged

    @property
    def places(self) -> set[str]:
        """What a study may call it by: the paper, and the table of the paper."""
        return {self.source, f"{self.source}/{self.table}"}

    @property
    def factor(self) -> float:
        """Factor from the print to ``points``."""
        return SCORE_UNITS[self.unit] if self.is_score else 1.0

    @property
    def points(self) -> float:
        """The value, in percentage points if it is a score."""
        return float(self.value) * self.factor

    @property
    def sd_points(self) -> float | None:
        """The printed spread in the unit of ``points``."""
        return None if self.std is None else self.std * self.factor

    @property
    def rounding(self) -> float:
        """Half a unit of the last printed digit in the unit of ``points``: 0.05 for "81.2"."""
        return 0.5 * 10.0**-self.digits * self.factor

    @property
    def text(self) -> str:
        """The value with the digits of its print, in percentage points if it is a score."""
        if not self.is_score:
            return f"{float(self.value):g}"
        digits = self.digits
        if self.unit == "fraction":
            digits -= 2
        return f"{self.points:.{max(0, digits)}f}"

    @property
    def digits(self) -> int:
        """The number of printed digits behind the point."""
        return -int(self.value.as_tuple().exponent)

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
_FOLLOWING = ("line", "means", "outside", "required", "conditions", "kind", "elsewhere")
_NAMES = [column.name for column in fields(PublishedNumber)]
COLUMNS = tuple(name for name in _NAMES if name not in _FOLLOWING)


@dataclass(frozen=True)
class PrintedTable(Closed):
    """One printed table: the columns of ``results.csv`` that make its sections, rows and columns.

    kinds       of its numbers; none: each number has the kind that its metric says
    read_as     {column: {printed value: the value it is arranged under}}
    """

    title: str
    rows: Names
    columns: Names
    sections: Annotated[tuple[str, ...], Distinct] = ()
    kinds: tuple[str, ...] = ()
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


# Of a cell, not of a split: what training cost, how fast it went, what an analysis measured.
COST_METRICS = (
    "seconds_per_epoch",
    "train_seconds",
    "loss_ms",
    "peak_gpu_mb",
    "eval_seconds",
    "convergence",
    "decomposability_gap",
    *COUNTS,
)
MOST_POINTS = 100  # between two scores
# The condition of an arm that is a network of another paper: its word is the printed table,
# "paper/table", whose number stands in for runs.
PRINTED = "printed"
BEST_COPIED = "best_copied"  # loss of a printed arm: whichever method of others has most there
Kind = Literal[
    "beats", "differs_by", "monotone", "best_at", "insensitive", "grows", "shrinks", "gains_most",
    "cost_ratio", "costs",
]  # fmt: skip
# Keys that a kind needs, and those that it may have besides; no other kind has them.
KEYS: dict[Kind, tuple[tuple[str, ...], ...]] = {
    "beats": (("first", "second"), ("by", "enough")),
    "differs_by": (("first", "second"), ("by", "margin", "enough")),
    "monotone": (("first",), ("margin",)),
    "best_at": (("levels", "best"), ("near", "margin")),
    "insensitive": (("levels",), ("margin",)),
    "grows": (("first", "second"), ()),
    "shrinks": (("first", "second"), ()),
    "gains_most": (("first", "second"), ()),
    "cost_ratio": (("first", "second", "between"), ()),
    "costs": (("first", "between"), ()),
}
CLAIM_KEYS = sorted({key for needed, optional in KEYS.values() for key in (*needed, *optional)})


def _some(counts: tuple[int, int]) -> tuple[int, int]:
    if counts[0] >= counts[1]:
        raise ValueError("write how many parts must hold, then the larger number of all parts")
    return counts


def _rising(values: tuple[float, ...]) -> tuple[float, ...]:
    if any(low >= high for low, high in itertools.pairwise(values)):
        raise ValueError("write the lowest ratio first, then a higher one")
    return values


Points = Annotated[float, Field(ge=-MOST_POINTS, le=MOST_POINTS, strict=True)]
Above0 = Annotated[float, Field(gt=0, lt=1e12, strict=True)]


@dataclass(frozen=True)
class Arm(Closed):
    """One side of a comparison: a loss, and the conditions that its runs meet.

    loss    registry name; with the condition ``printed`` the method of a row of a printed table
    where   {condition: word} of the vocabulary
    prefer  conditions of the runs that are taken where there are any; else those without them
    """

    loss: str
    where: Mapping[str, Any] = field(default_factory=dict)
    prefer: Mapping[str, Any] = field(default_factory=dict)
    backbone: str = ""
    embedding_dim: Size | None = None
    batch_size: Size | None = None
    required: tuple[Requirement, ...] = ()
    preferred: tuple[Requirement, ...] = ()

    def resolved(self, vocabulary: Vocabulary) -> Arm:
        """Return the arm with its conditions as the vocabulary understands them."""
        dim = {} if self.embedding_dim is None else {EMBEDDING_DIM: self.embedding_dim}
        return replace(
            self,
            required=vocabulary.requirements({**self.where, **dim}),
            preferred=vocabulary.requirements(self.prefer),
        )

    @property
    def name(self) -> str:
        """The arm as text: "fast_ap bins=10"."""
        facts = [f"{key}={word}" for key, word in self.where.items()]
        facts += [self.backbone, f"dim {self.embedding_dim}" if self.embedding_dim else ""]
        facts.append(f"batch {self.batch_size}" if self.batch_size else "")
        return " ".join([self.loss, *filter(None, facts)])


_AnArm = BeforeValidator(lambda value: {"loss": value} if isinstance(value, str) else value)
Arms = Annotated[tuple[Annotated[Arm, _AnArm], ...], Distinct]


@dataclass(frozen=True)
class Levels(Closed):
    """The levels at which a hyperparameter or another condition of a loss was tried."""

    loss: str
    key: str
    values: Annotated[tuple[Any, ...], Field(min_length=2), Distinct]


@dataclass(frozen=True)
class Scope(Closed):
    """Where the paper says it: datasets x batch sizes (none: whichever were run), on one backbone.

    ``instead_of`` names a dataset of the paper that nobody can have and that ``datasets`` replace.
    """

    datasets: Names
    protocol: str = ""
    backbone: str = ""
    batch_sizes: Annotated[tuple[Size, ...], Distinct] = ()
    instead_of: str = ""

    @property
    def text(self) -> str:
        """The scope for a reader: "sop, cub; resnet50; batch 32, 128"."""
        instead = f" instead of {self.instead_of}" if self.instead_of else ""
        protocol = f" ({self.protocol})" if self.protocol else ""
        sizes = ", ".join(map(str, self.batch_sizes))
        data = ", ".join(self.datasets) + instead + protocol
        return "; ".join(filter(None, (data, self.backbone, sizes and f"batch {sizes}")))


@dataclass(frozen=True)
class Claim(Closed):
    """A sentence and its test.

    stated_in       where in the paper
    first, second   the two sides of a comparison; ``levels`` instead where a value is swept
    published       where the paper says so
    alpha           one-sided level at which each part has to hold
    by              points by which the first must be better, or by which it differs
    enough          (k, n): k of the n parts must hold, where the sentence is not about all
    margin          points of no consequence, where they are not those of the metric
    best, near      the level that is best, and levels that may be as good
    between         lowest and, if given, highest ratio or cost that agrees with the sentence
    outside         why no run of the suite can decide the sentence as published, or ""
    """

    stated_in: Text
    sentence: Annotated[str, StringConstraints(strip_whitespace=True, min_length=20)]
    kind: Kind
    metrics: Names
    published: Annotated[tuple[Scope, ...], Field(min_length=1), Distinct]
    alpha: Annotated[float, Field(gt=0, le=0.05, strict=True)] = 0.05
    first: Arms = ()
    second: Arms = ()
    levels: Levels | None = None
    by: Points = 0.0
    enough: Annotated[tuple[Size, Size], AfterValidator(_some)] | None = None
    margin: Above0 | None = None
    best: Any = None
    near: Annotated[tuple[Any, ...], Distinct] = ()
    between: Annotated[tuple[Above0, ...], Field(max_length=2), AfterValidator(_rising)] = ()
    outside: str = ""
    name: str = ""
    source: str = ""
    level_arms: Mapping[str, Arm] = field(default_factory=dict)

    def resolved(self, name: str, source: str, vocabulary: Vocabulary) -> Claim:
        """Return the claim of this name, with its arms as the vocabulary understands them."""
        arms = {}
        if levels := self.levels:
            arms = {str(value): Arm(levels.loss, {levels.key: value}) for value in levels.values}
        return replace(
            self,
            name=name,
            source=source,
            sentence=" ".join(self.sentence.split()),
            outside=" ".join(self.outside.split()).rstrip("."),
            first=tuple(arm.resolved(vocabulary) for arm in self.first),
            second=tuple(arm.resolved(vocabulary) for arm in self.second),
            level_arms={word: arm.resolved(vocabulary) for word, arm in arms.items()},
        )

    @property
    def arms(self) -> tuple[Arm, ...]:
        """All arms, in order."""
        return (*self.first, *self.second, *self.level_arms.values())

    @property
    def condition(self) -> str:
        """The published scope for a reader; what differs in the protocol alone is said once."""
        protocols: dict[Scope, list[str]] = {}
        for scope in self.published:
            protocols.setdefault(replace(scope, protocol=""), []).append(scope.protocol)
        return " | ".join(
            replace(scope, protocol=", ".join(filter(None, names))).text
            for scope, names in protocols.items()
        )


def printed_numbers(
    arm: Arm, dataset: str, protocol: str, metric: str, numbers: Iterable[PublishedNumber]
) -> list[PublishedNumber]:
    """Return the numbers of a printed table that an arm names, under one condition of a claim.

    ``arm.loss`` is the loss of the row, or its method where the suite has no such loss, or
    ``best_copied``. A protocol is that of the number, or the split that the dataset of the number
    is measured on; expanded queries are a protocol of their own.
    """
    plain = "" if protocol == "test" else protocol
    split = protocol + split_suffix(arm.required)
    fitting = []
    for number in numbers:
        on_split = f"{number.dataset}_{number.protocol}" == split
        if (
            number.metric == metric
            and (on_split or (number.dataset, number.protocol) == (dataset, plain))
            and str(arm.embedding_dim or number.embedding_dim) == number.embedding_dim
            and arm.backbone in ("", number.backbone)
        ):
            fitting.append(number)
    if arm.loss == BEST_COPIED:
        copied = [number for number in fitting if number.provenance == "copied"]
        return sorted(copied, key=attrgetter("points"))[-1:]
    return [number for number in fitting if number.loss == arm.loss]


# The change of a score that our value is expected to make, in points; judged, not measured. An
# option with "no effect" cannot act; "none" is for one that acts as paper or code say.
Effect = Literal["no effect", "none", "below 0.3", "0.3 to 1", "above 1", "unknown"]
LARGE: tuple[Effect, ...] = ("0.3 to 1", "above 1", "unknown")


@dataclass(frozen=True)
class EpochRule(Closed):
    """Which epoch a paper's numbers are of, and how that is known.

    lead   the split that chooses the epoch of all splits of a run; "": each split chooses its own
    """

    rule: Literal["last", "one_best", "best_recall_at_1"]
    why: Text
    lead: str = ""


@dataclass(frozen=True, kw_only=True)
class PaperFile(Words):
    """``paper.yaml``: names, versions, deviations of our runs, and the paper's own words.

    epoch      None where nobody says which epoch the numbers are of; they count as the last one's
    elsewhere  the figures and sections among what ``results.csv`` calls tables:
               {"fig5a": "figure 5a"}
    """

    name: Text
    citation: Text
    title: Text
    versions: Mapping[Name, str] = field(default_factory=dict)
    epoch: EpochRule | None = None
    deviations: tuple[str, ...] = ()
    elsewhere: Mapping[Name, Text] = field(default_factory=dict)


@dataclass(frozen=True)
class SelectedRows(Closed):
    """Something about the rows of ``results.csv`` that have these values, {column: value}."""

    rows: Mapping[str, Any]


@dataclass(frozen=True)
class Implied(SelectedRows):
    """What the rows mean without stating it, why, and the effect on a score if they do not."""

    means: Annotated[Mapping[str, Any], Field(min_length=1)]
    why: Text
    effect: Effect = "none"


@dataclass(frozen=True)
class Outside(SelectedRows):
    """Why no study covers the rows."""

    reason: Text


@dataclass(frozen=True)
class Remark(SelectedRows):
    """What a paper says against itself of the rows."""

    text: Text


as_yaml = functools.cache(parse_yaml)  # of a value that many recipes have


def _as_in_recipes(value: str) -> str:
    """Return a text that is empty or a value as recipes have them, with which it is compared."""
    try:
        if not value or as_yaml(value).lines:
            return value
        problem = "blank or a comment"
    except YamlError as error:
        problem = str(error)
    raise ValueError(f"is not a value of a recipe ({problem}); put a text into quotes")


Stated = Annotated[str, BeforeValidator(_as_in_recipes)]


@dataclass(frozen=True)
class Fact:
    """A row of ``fidelity.csv``: what a paper and its authors' code say about a recipe's value.

    The file lies in a paper's folder. The one beside this module holds values of no paper.

    recipe     names of recipes, with * for any part; several are separated by spaces
    item       keys such as optimizer.lr, losses.roadmap.delta or options.sota.input.resize
    paper      what the paper states, and ``stated_in`` where; empty: it does not
    code       what the authors' code does, and ``code_at`` in which lines: repository (owner/name),
               path and number; empty: it does not say, or there is none
    effect     of the difference on a score, in points
    """

    recipe: Text
    item: Text
    paper: Stated
    stated_in: str
    code: Stated
    code_at: str
    effect: Effect
    reason: str
    line: int = 0

    def is_of(self, recipe: str) -> bool:
        """Return whether the row is about this recipe."""
        return any(fnmatch(recipe, pattern) for pattern in self.recipe.split())

    def in_repository(self, repository: str) -> Fact:
        """Return the fact as far as a line of this repository shows it; "": of any."""
        places = [place for place in self.code_at.split() if place.startswith(repository)]
        code = self.code if places or not self.code_at else ""
        return replace(self, code=code, code_at=" ".join(places))

    def is_about(self, item: str) -> bool:
        """Return whether the row is about this value."""
        return any(fnmatch(item, pattern) for pattern in self.item.split())


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper: its files, of which only ``paper.yaml`` and ``results.csv`` must be there.

    Of several versions the last one counts: ``source`` is the paper in that version. Numbers,
    claims and figures carry what follows from the folder and the ``vocabulary``, which has the
    paper's own words.
    """

    key: str
    folder: Path
    vocabulary: Vocabulary
    about: PaperFile
    numbers: tuple[PublishedNumber, ...] = ()
    facts: tuple[Fact, ...] = ()
    implied: tuple[Implied, ...] = ()
    outside: tuple[Outside, ...] = ()
    footnotes: tuple[FootnoteRule, ...] = ()
    remarks: tuple[Remark, ...] = ()
    tables: Mapping[str, PrintedTable] = field(default_factory=dict)
    claims: Mapping[Name, Claim] = field(default_factory=dict)
    figures: Mapping[Name, Figure] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The name that studies and verdicts use: "roadmap2021v2"."""
        return self.key + (list(self.about.versions) or [""])[-1]

    @property
    def selection(self) -> tuple[str, str]:
        """The rule by which our epoch is chosen for its numbers, and the split that leads."""
        epoch = self.about.epoch
        return (epoch.rule, epoch.lead) if epoch else ("last", "")

    @property
    def names(self) -> dict[str, str]:
        """The name of each version for people, by source."""
        return {self.key + version: name for version, name in self.about.versions.items()} or {
            self.key: self.about.name
        }

    @property
    def made(self) -> dict[tuple[str, str], str]:
        """The files that reports make of the paper, as ("table", name), with their keys."""
        files = {}
        for name in self.tables:
            files["table", f"{self.source}_{name}"] = f"tables.{name}"
        for name, figure in self.figures.items():
            files["figure", figure.name] = f"figures.{name}"
        return files

    def remarks_on(self, number: PublishedNumber) -> list[str]:
        """Return what the paper says against itself of one of its numbers."""
        remarks = [remark.text for remark in self.remarks if number.fits(remark.rows)]
        return [" ".join(text.split()) for text in remarks]

    def table(self, name: str) -> list[PublishedNumber]:
        """Return the numbers of one printed table, in the order of the print."""
        printed = f"{self.source}/{name}"
        return [number for number in self.numbers if printed in number.places]
