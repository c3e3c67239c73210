"""What an analysis is before it becomes files: a figure, a table, and the papers' claims held against them."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmark.papers.verdicts.vocabulary import CONTRADICTED, INCONCLUSIVE, SUPPORTED
from benchmark.report.figures.drawing import Drawing
from benchmark.report.tables.table import Table

WORDS = {
    SUPPORTED: "This agrees with the paper.",
    CONTRADICTED: "This does not agree with the paper.",
    INCONCLUSIVE: "This decides neither way.",
}


@dataclass(frozen=True)
class Claim:
    """A statement of a paper and what was found.

    name     short and unique within the analysis
    place    paper, figure, table or equation
    says     the statement, in our words
    found    one sentence with the numbers
    verdict  "supported", "contradicted" or "inconclusive"
    """

    name: str
    place: str
    says: str
    found: str
    verdict: str

    @property
    def sentence(self) -> str:
        """Returns the finding with its judgement in plain words."""
        return f"{self.found} {WORDS[self.verdict]}"


@dataclass(frozen=True)
class Analysis:
    """A finished analysis; ``notes`` are sentences that judge no claim, computed from the numbers as well."""

    drawing: Drawing
    table: Table
    claims: list[Claim]
    notes: list[str] = field(default_factory=list)


def judged(holds: bool | None) -> str:
    """Returns the verdict for a statement that holds, does not hold, or is left open (None)."""
    return {True: SUPPORTED, False: CONTRADICTED, None: INCONCLUSIVE}[holds]
