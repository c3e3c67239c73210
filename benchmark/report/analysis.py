"""``summary.json`` of an analysis: all that the page says beside its figure and its table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from benchmark.core.files import write_json
from benchmark.report.artefacts import read_record

SUMMARY = "summary.json"
Verdict = Literal["supported", "contradicted", "inconclusive"]


@dataclass(frozen=True)
class Finding:
    """A statement of a paper and what was found.

    name      short and unique within the analysis
    place     paper, figure, table or equation
    says      the statement, in our words
    found     one sentence with the numbers
    sentence  the same with its judgement in plain words
    """

    name: str
    place: str
    says: str
    found: str
    verdict: Verdict
    sentence: str


@dataclass(frozen=True)
class AnalysedRun:
    """A run that was trained for an analysis."""

    run_id: str
    spec_digest: str


@dataclass(frozen=True)
class AnalysisSummary:
    """A finished analysis; ``sentences`` are those of the claims, and remarks that judge none."""

    name: str
    title: str
    places: list[str]
    caption: str
    alt: str
    table_caption: str
    table_notes: list[str]
    sentences: list[str]
    claims: list[Finding]
    code_version: str
    platform: str
    study: str
    quick: bool
    seeds: list[int]
    runs: list[AnalysedRun]
    schema: Literal[1] = 1

    @property
    def remarks(self) -> list[str]:
        """Return the sentences that judge no claim."""
        judged = {claim.sentence for claim in self.claims}
        return [sentence for sentence in self.sentences if sentence not in judged]

    def write(self, folder: Path) -> None:
        """Write the record, last of the analysis's files: its presence says that all are there."""
        write_json(folder / SUMMARY, asdict(self))

    @staticmethod
    def read(folder: Path) -> AnalysisSummary:
        """Return the record in an analysis's folder; raise RunError when it cannot be read."""
        command = f"python -m benchmark analyse {folder.name} {folder.parent.parent.name}"
        return read_record(AnalysisSummary, folder / SUMMARY, command)
