"""The words of papers, those of ``vocabulary.yaml`` and their own, and the metrics' margins."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from benchmark.core.documents import read_document
from benchmark.core.files import adapter
from benchmark.metrics.metric import display_name, metric_of

FILE = Path(__file__).with_name("vocabulary.yaml")
# Columns of conditions that are not settings of a run.
OPTIONS = "options"
SPLIT = "split"
EMBEDDING_DIM = "embedding_dim"


class Closed:
    """A record whose file may hold no other keys."""

    __pydantic_config__ = ConfigDict(extra="forbid")


def read_own(path: Path, kind: Any) -> Any:
    """Return a YAML file of this repository, which its tests check, as a ``kind``."""
    return adapter(kind).validate_python(read_document(path).data)


@dataclass(frozen=True)
class Method(Closed):
    """The loss behind a paper's method, and what the method says of a run besides."""

    loss: str
    means: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Condition(Closed):
    """The data behind a stated condition; ``vocabulary.yaml`` describes the fields."""

    column: str
    values: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    otherwise: str = ""
    together_with: tuple[str, ...] = ()

    def word(self, value: Any) -> str:
        """Return the paper's word for a value of the column."""
        for word, values in self.values.items():
            if value in values:
                return word
        if self.otherwise or value is None:
            return self.otherwise
        return str(value)

    def covers(self, column: str) -> bool:
        """Return whether the condition accounts for a change of ``column``."""
        parts = (self.column, *self.together_with)
        return any(column == part or column.startswith(f"{part}.") for part in parts)


@dataclass(frozen=True)
class Requirement:
    """One condition that the runs of a published number, or of an arm of a claim, have to meet."""

    key: str
    word: str
    condition: Condition

    def met(self, settings: Mapping[str, Any]) -> bool:
        """Return whether runs with ``settings`` meet it; numbers are compared by value."""
        value = settings.get(self.condition.column)
        if self.condition.column == OPTIONS:
            return self.word in (value or ())
        if self.condition.column == SPLIT:
            return self.word in self.condition.values
        ours = self.condition.word(value)
        try:
            return float(ours) == float(self.word)
        except ValueError:
            return ours == self.word

    @property
    def text(self) -> str:
        """The condition for a reader: "tau=0.1"."""
        if self.key == EMBEDDING_DIM:
            return f"embedding dimension {self.word}"
        return f"{self.key}={self.word}"


def split_suffix(requirements: Iterable[Requirement]) -> str:
    """Return what the conditions put behind the name of a split: "+aqe", or ""."""
    suffix = ""
    for requirement in requirements:
        condition = requirement.condition
        if condition.column == SPLIT:
            suffix += "".join(condition.values.get(requirement.word, ()))
    return suffix


@dataclass(frozen=True)
class Quantity(Closed):
    """A printed quantity that is not a score: what measures it, and columns that do not matter."""

    source: str
    free: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableKind(Closed):
    """A kind of printed numbers; ``vocabulary.yaml`` describes the fields."""

    metrics: tuple[str, ...] = ()
    judged: bool = False
    measured: str = ""
    free: tuple[str, ...] = ()
    word: str = ""
    says: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Words(Closed):
    """Words that a paper may add to the shared ones; ``vocabulary.yaml`` describes the fields."""

    methods: Mapping[str, Method] = field(default_factory=dict)
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Vocabulary(Words):
    """All words."""

    datasets: Mapping[str, str]
    backbones: Mapping[str, str]
    widths: Mapping[str, int]
    readings: tuple[str, ...]
    quantities: Mapping[str, Quantity]
    kinds: Mapping[str, TableKind]

    def with_words(self, paper: Words) -> Vocabulary:
        """Return the vocabulary with the words of a paper, which go first."""
        names = dict(self.names)
        for column, own_names in paper.names.items():
            names[column] = {**names.get(column, {}), **own_names}
        return replace(
            self,
            methods={**self.methods, **paper.methods},
            conditions={**self.conditions, **paper.conditions},
            names=names,
        )

    def requirements(self, stated: Mapping[str, Any]) -> tuple[Requirement, ...]:
        """Return what {condition: word} asks of runs; an unknown key is a hyperparameter."""
        requirements = []
        for key, word in stated.items():
            condition = self.conditions.get(key) or Condition(f"loss.{key}")
            requirements.append(Requirement(key, str(word), condition))
        return tuple(requirements)

    def free(self, metric: str) -> tuple[str, ...]:
        """Return the columns that a quantity does not depend on; none for a score."""
        quantity = self.quantities.get(metric)
        return quantity.free if quantity else ()

    def kind_of(self, metric: str, names: Iterable[str] = ()) -> TableKind:
        """Return the first kind that has a metric: of the named kinds, else of all."""
        if metric_of(metric):
            return self.kinds["scores"]
        for name in (*names, *self.kinds):
            kind = self.kinds.get(name)
            if kind and any(fnmatch(metric, pattern) for pattern in kind.metrics):
                return kind
        return TableKind()

    def backbone(self, model: str) -> str:
        """Return the papers' word for a timm model, whose weights are named behind a dot."""
        architecture = model.partition(".")[0]
        return self.backbones.get(architecture, architecture)

    def name(self, column: str, value: str) -> str:
        """Return a value of a printed column for people: "Stanford Online Products"."""
        named = self.names.get(column, {}).get(value, "")
        if not named and column == "metric":
            return display_name(value)
        return named or value


@functools.cache
def load_vocabulary() -> Vocabulary:
    """Return the shared vocabulary."""
    words: Vocabulary = read_own(FILE, Vocabulary)
    return words


def margin_of(metric: str, score: float = math.nan) -> float:
    """Return the margin of ``metric`` for a reference of ``score`` percent (NaN: as for 0).

    NaN for a metric without one.
    """
    measured = metric_of(metric)
    if measured is None:
        return math.nan
    steps = dict(measured.margin)
    return steps[max((height for height in steps if height <= score), default=0.0)]
