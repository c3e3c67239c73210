"""One folder a paper: everything that is known of it as data, read and checked as a whole.

``docs/papers.md`` describes the files. Papers are the folders with a ``paper.yaml`` in this
package and in the folders named by ``BENCHMARK_PLUGINS``.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from benchmark.core.errors import ReferenceDataError
from benchmark.papers.arrangements import Figure, FootnoteRule, PrintedTable
from benchmark.papers.checks import paper_problems
from benchmark.papers.claims.model import Claim
from benchmark.papers.facts import Fact, read_facts
from benchmark.papers.numbers import Name, PublishedNumber, Text
from benchmark.papers.reading import Closed, read_csv, read_yaml
from benchmark.papers.vocabulary import Condition, Method, Vocabulary, load_vocabulary
from benchmark.study.data_files import PACKAGE, PAPER, paper_folders

T = TypeVar("T")


@dataclass(frozen=True)
class EpochRule(Closed):
    """Which epoch a paper's numbers are of, and where that is known from."""

    rule: Literal["last", "one_best"]
    why: Text


@dataclass(frozen=True)
class PaperFile(Closed):
    """``paper.yaml``: names, versions, deviations of our runs, and the paper's own words.

    ``epoch``: None where nobody says which epoch the numbers are of; they count as the last one's.
    """

    name: Text
    citation: Text
    title: Text
    versions: Mapping[Name, str] = field(default_factory=dict)
    epoch: EpochRule | None = None
    deviations: tuple[str, ...] = ()
    methods: Mapping[str, Method] = field(default_factory=dict)
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Implied(Closed):
    """What the rows that have these values mean without stating it, and why."""

    rows: Mapping[str, Any]
    means: Annotated[Mapping[str, Any], Field(min_length=1)]
    why: Text


@dataclass(frozen=True)
class Outside(Closed):
    """Why no study covers the rows that have these values."""

    rows: Mapping[str, Any]
    reason: Text


@dataclass(frozen=True)
class Paper:
    """A paper. Of several versions the last one counts: ``source`` is the paper in that version."""

    key: str
    folder: Path
    about: PaperFile
    vocabulary: Vocabulary
    numbers: tuple[PublishedNumber, ...]
    claims: tuple[Claim, ...]
    tables: Mapping[str, PrintedTable]
    figures: tuple[Figure, ...]
    footnotes: tuple[FootnoteRule, ...]
    facts: tuple[Fact, ...] = ()
    implied: tuple[Implied, ...] = ()
    outside: tuple[Outside, ...] = ()

    @property
    def source(self) -> str:
        """The name that studies and verdicts use: "roadmap2021v2"."""
        return self.key + (list(self.about.versions) or [""])[-1]

    @property
    def selection(self) -> str:
        """The rule by which our epoch is chosen for its numbers: "last" or "one_best"."""
        return self.about.epoch.rule if self.about.epoch else "last"

    @property
    def names(self) -> dict[str, str]:
        """The name of each version for people, by source."""
        return {self.key + version: name for version, name in self.about.versions.items()} or {
            self.key: self.about.name
        }

    def files(self, kind: str) -> list[str]:
        """Return the names of the files of the paper's tables, or of its figures."""
        if kind == "figure":
            return [each.name for each in self.figures]
        return [f"{self.source}_{name}" for name in self.tables]

    def table(self, name: str, source: str = "") -> list[PublishedNumber]:
        """Return the numbers of one printed table, in the order of the print."""
        source = source or self.source
        return [each for each in self.numbers if (each.source, each.table) == (source, name)]


def load_papers() -> Mapping[str, Paper]:
    """Return all papers by key; raise ReferenceDataError with every problem of the user's own."""
    return _load(tuple(paper_folders().values()))


def check_papers() -> None:
    """Check all papers, those of this repository as well; raise ReferenceDataError."""
    papers = load_papers()
    if lines := [line for each in papers.values() for line in paper_problems(each, papers)]:
        raise ReferenceDataError("\n".join(lines))


@functools.cache
def _load(folders: tuple[Path, ...]) -> Mapping[str, Paper]:
    problems: list[str] = []
    papers = [read_paper(folder, problems) for folder in folders]
    found = {paper.key: paper for paper in papers if paper is not None}
    for paper in found.values():
        if paper.folder.parent != PACKAGE:
            problems += paper_problems(paper, found)
    if problems:
        raise ReferenceDataError("\n".join(problems))
    return found


def read_paper(folder: Path, problems: list[str]) -> Paper | None:
    """Return the paper in ``folder``, adding what is wrong with it to ``problems``."""
    before = len(problems)
    about = read_yaml(folder / PAPER, PaperFile, problems)
    implied = _listed(folder, "implied", Implied, problems)
    outside = _listed(folder, "outside", Outside, problems)
    footnotes = _listed(folder, "footnotes", FootnoteRule, problems)
    claims = read_yaml(folder / "claims.yaml", dict[Name, Claim], problems) or {}
    tables = read_yaml(folder / "tables.yaml", dict[str, PrintedTable], problems) or {}
    figures = read_yaml(folder / "figures.yaml", dict[Name, Figure], problems) or {}
    versions = ("version",) if about and about.versions else ()
    facts = read_facts(folder, problems)
    numbers = read_csv(folder / "results.csv", PublishedNumber, problems, versions)
    if about is None or len(problems) > before:
        return None
    words = load_vocabulary().extended(about.methods, about.conditions, about.names)
    source = folder.name + (list(about.versions) or [""])[-1]
    paper = Paper(
        folder.name, folder, about, words, (), (), tables, (), footnotes, facts, implied, outside
    )
    return replace(
        paper,
        numbers=tuple(_completed(each, paper) for each in numbers),
        claims=tuple(each.resolved(name, paper.source, words) for name, each in claims.items()),
        figures=named_figures(figures, source),
    )


def named_figures(figures: Mapping[str, Figure], source: str) -> tuple[Figure, ...]:
    """Return figures with their names; ``source`` is the paper that prints them."""
    prefix = f"{source}_" if source else ""
    return tuple(
        replace(each, name=f"{prefix}{name}", source=source) for name, each in figures.items()
    )


def _listed(folder: Path, name: str, kind: type[T], problems: list[str]) -> tuple[T, ...]:
    """Return the entries of a file that holds one list, under its own name."""
    file = make_dataclass(name, [(name, tuple[kind, ...])], bases=(Closed,), frozen=True)  # type: ignore[valid-type]
    found = read_yaml(folder / f"{name}.yaml", file, problems)
    return () if found is None else getattr(found, name)


def _completed(number: PublishedNumber, paper: Paper) -> PublishedNumber:
    """Return a number with what the folder and the vocabulary say about it."""
    method = paper.vocabulary.methods.get(number.method, Method(number.method))
    dataset = paper.vocabulary.datasets.get(number.dataset, number.dataset)
    number = replace(number, source=paper.key + number.version, loss=method.loss, dataset=dataset)
    means = {**method.means}
    for entry in paper.implied:
        if number.fits(entry.rows):
            means |= {key: str(word) for key, word in entry.means.items()}
    reason = next((entry for entry in paper.outside if number.fits(entry.rows)), None)
    if reason is None:
        return replace(number, means=means)
    words = " ".join(reason.reason.split())
    return replace(number, means=means, outside=words)
