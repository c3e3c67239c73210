"""What a claim is: a sentence of a paper and its test, as the paper's ``claims.yaml`` has them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from benchmark.papers.numbers import PublishedNumber, Size, Text
from benchmark.papers.quantities import COUNTS
from benchmark.papers.reading import Closed, Distinct
from benchmark.papers.vocabulary import EMBEDDING_DIM, Requirement, Vocabulary, split_suffix

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
KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
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

    datasets: Annotated[tuple[str, ...], Field(min_length=1), Distinct]
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
    metrics: Annotated[tuple[str, ...], Field(min_length=1), Distinct]
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
    here = [
        each
        for each in numbers
        if each.metric == metric
        and str(arm.embedding_dim or each.embedding_dim) == each.embedding_dim
        and (arm.backbone or each.backbone) == each.backbone
        and (
            (each.dataset, each.protocol) == (dataset, plain)
            or f"{each.dataset}_{each.protocol}" == split
        )
    ]
    if arm.loss == BEST_COPIED:
        copied = [each for each in here if each.provenance == "copied"]
        return sorted(copied, key=lambda each: each.points)[-1:]
    return [each for each in here if each.loss == arm.loss]
