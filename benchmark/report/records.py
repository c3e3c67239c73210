"""The records of tables, figures, analyses and the gallery: what the page shows of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from benchmark.core.files import read_record, write_json

Group = Literal["study", "paper", "sweep"]


class Part(NamedTuple):
    """A table or figure that a study asks for; ``make`` may raise NothingToShow."""

    name: str
    title: str
    group: Group
    make: Callable[[], Any]


@dataclass(frozen=True)
class Artefact:
    """A table or figure, whose files have its name; or the reason why there is none.

    group      whether it is the study's own, a paper's, or that of a sweep
    caption    of a figure, with ``alt``, its description for those who cannot see it
    html       of a table: the element that a page shows
    measured   whether any number in it is ours
    files      the texts of its files by their endings, as far as the page needs them
    """

    name: str
    title: str
    group: Group = "study"
    reason: str = ""
    rows: int = 0
    caption: str = ""
    alt: str = ""
    html: str = ""
    measured: bool = True
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """Return what was made, in a few words."""
        return f"nothing to show: {self.reason}" if self.reason else f"{self.rows} rows"


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
        command = f"analyse {folder.name} {folder.parent.parent.name}"
        return read_record(AnalysisSummary, folder / SUMMARY, "an analysis", command)


GALLERY, GALLERY_FILE = "gallery", "gallery.json"
SIDES: tuple[Literal["first", "second"], ...] = ("first", "second")


@dataclass(frozen=True)
class QuerySide:
    """A query under one loss: its AP, and the matches among the images that are shown."""

    average_precision: float
    matches: int
    retrieved: int


@dataclass(frozen=True)
class Query:
    """A query under both losses, and why it is shown."""

    name: str
    reason: str
    positives: int
    first: QuerySide
    second: QuerySide


@dataclass(frozen=True)
class Picture:
    """The file of a loss's picture, one query a row, and the picture in words."""

    file: str
    alt: str


@dataclass(frozen=True)
class RunSide:
    """One of the two runs: its loss and its score of the headline metric."""

    loss: str
    display: str
    run_id: str
    score: float


@dataclass(frozen=True)
class RunPair:
    """Two runs that differ in their loss alone."""

    dataset: str
    setting: str
    batch_size: int
    seed: int
    metric: str
    first: RunSide
    second: RunSide


@dataclass(frozen=True)
class PairQueries:
    """The queries of two runs: how many the second loss ranks better and worse, of ``recorded``."""

    pair: RunPair
    recorded: int
    improved: int
    worsened: int
    queries: list[Query]
    first: Picture
    second: Picture


@dataclass(frozen=True)
class Gallery:
    """The gallery of a study; ``reason`` says why there is none.

    ``files`` are the contents of its files by name, as far as the page needs them.
    """

    study: str
    pairs: list[PairQueries]
    reason: str = ""
    schema: Literal[3] = 3
    files: Mapping[str, bytes] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write the record into the folder of the gallery."""
        facts = asdict(replace(self, files={}))
        del facts["files"]
        write_json(folder / GALLERY_FILE, facts)
