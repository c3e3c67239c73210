"""The records of tables, figures and analyses: what the page shows of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from benchmark.core.files import read_record, write_json

Kind = Literal["table", "figure"]
Group = Literal["study", "paper", "sweep"]
SUMMARY = "summary.json"


class PlannedArtefact(NamedTuple):
    """A table or figure that a study asks for; ``make`` may raise NothingToShow."""

    name: str
    title: str
    group: Group
    make: Callable[[], Any]


@dataclass(frozen=True)
class Artefact:
    """A table or figure, whose files have its name; or the reason why there is none.

    ``element`` is what a page shows; ``measured``: whether any number in a table is ours;
    ``files``: texts by their endings, as far as the page needs them.
    """

    kind: Kind
    name: str
    title: str
    group: Group = "study"
    reason: str = ""
    rows: int = 0
    caption: str = ""
    element: str = ""
    measured: bool = True
    files: Mapping[str, str] = field(default_factory=dict)


Verdict = Literal["supported", "contradicted", "inconclusive"]


@dataclass(frozen=True)
class Finding:
    """A statement of a paper, what was found (a sentence), and the same with its judgement.

    ``place`` is a paper, figure, table or equation; ``says`` the statement in our words.
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
        command = f"analyse {folder.name} {folder.parent.parent.name}"
        return read_record(AnalysisSummary, folder / SUMMARY, "an analysis", command)
