"""What a claim is once its entry in ``claims.yaml`` has been checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Arm:
    """One side of a comparison, in the words that published rows are matched by (``benchmark.papers.verdicts.matching``).

    ``conditions`` are alternatives, tried in order: ("bins=10", "") is a variant named for its 10 bins or, where
    there is none, the loss as it stands. Empty facts are open; the ones stated here hold in both readings.
    """

    loss: str
    conditions: tuple[str, ...] = ("",)
    backbone: str = ""
    embedding_dim: str = ""
    batch_size: int | None = None

    @property
    def name(self) -> str:
        """Returns the arm as text: "fast_ap bins=10"."""
        return self.found_as(self.conditions[0])

    def found_as(self, condition: str) -> str:
        """Returns the arm as text when its runs meet ``condition``, one of its alternatives.

        Runs as they stand in place of a named condition say so: "fast_ap (plain for bins=10)".
        """
        plain = f"(plain for {self.conditions[0]})" if self.conditions[0] and not condition else ""
        facts = [condition.replace(";", " "), self.backbone]
        facts.append(f"dim {self.embedding_dim}" if self.embedding_dim else "")
        facts.append(f"batch {self.batch_size}" if self.batch_size else "")
        return " ".join([self.loss, *filter(None, [*facts, plain])])


@dataclass(frozen=True)
class Condition:
    """Where the paper says it: datasets x batch sizes on one backbone; empty batch sizes: whichever were run.

    ``instead_of`` names a dataset of the paper that nobody can have and that ``datasets`` replace.
    """

    datasets: tuple[str, ...]
    protocol: str = ""
    backbone: str = ""
    batch_sizes: tuple[int, ...] = ()
    instead_of: str = ""

    @property
    def text(self) -> str:
        """Returns the condition for a reader: "sop, cub; resnet50; batch 32, 128"."""
        datasets = ", ".join(self.datasets) + (
            f" instead of {self.instead_of}" if self.instead_of else ""
        )
        parts = [datasets + (f" ({self.protocol})" if self.protocol else ""), self.backbone]
        if self.batch_sizes:
            parts.append("batch " + ", ".join(map(str, self.batch_sizes)))
        return "; ".join(filter(None, parts))


@dataclass(frozen=True)
class Claim:
    """A sentence and its test.

    ``first`` and ``second`` are the two sides of a comparison; ``levels`` replaces them where a hyperparameter is
    swept, by level as printed. ``options`` are those of the kind (``benchmark.papers.claims.kinds``). ``outside`` says why no
    run of the suite can decide the sentence as published; empty otherwise.
    """

    name: str
    paper: str
    place: str
    sentence: str
    kind: str
    metrics: tuple[str, ...]
    published: tuple[Condition, ...]
    alpha: float
    first: tuple[Arm, ...]
    second: tuple[Arm, ...]
    levels: dict[str, Arm]
    options: dict[str, Any]
    outside: str = ""

    @property
    def arms(self) -> tuple[Arm, ...]:
        """Returns all arms, in order."""
        return (*self.first, *self.second, *self.levels.values())

    @property
    def condition(self) -> str:
        """Returns the published condition for a reader; what differs in the protocol alone is said once."""
        protocols: dict[Condition, list[str]] = {}
        for condition in self.published:
            protocols.setdefault(replace(condition, protocol=""), []).append(condition.protocol)
        return " | ".join(
            replace(key, protocol=", ".join(filter(None, found))).text
            for key, found in protocols.items()
        )
