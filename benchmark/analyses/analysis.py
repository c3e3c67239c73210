"""What an analysis is before it becomes files: a figure, a table, and the papers' claims."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmark.report.analysis import Finding, Verdict
from benchmark.report.drawing.drawing import Drawing
from benchmark.report.render.table import Table

_VERDICTS: dict[bool | None, tuple[Verdict, str]] = {
    True: ("supported", "This agrees with the paper."),
    False: ("contradicted", "This does not agree with the paper."),
    None: ("inconclusive", "This decides neither way."),
}


@dataclass(frozen=True)
class Analysis:
    """A finished analysis; ``notes`` are sentences that judge no claim, made of the numbers too."""

    drawing: Drawing
    table: Table
    claims: list[Finding]
    notes: list[str] = field(default_factory=list)


def finding(name: str, place: str, says: str, found: str, holds: bool | None) -> Finding:
    """Return what was found about a statement: it holds, it does not, or it is open (None)."""
    verdict, judgement = _VERDICTS[holds]
    return Finding(name, place, says, found, verdict, f"{found} {judgement}")
