"""One folder a paper: all that is known of it as data, checked; and what all papers together know.

``docs/papers.md`` describes the files. Papers are the folders with a ``paper.yaml`` in this
package and in the folders named by ``BENCHMARK_PLUGINS``.
"""

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, make_dataclass, replace
from fnmatch import fnmatch
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from benchmark.core.documents import YamlError, parse_yaml
from benchmark.core.errors import ReferenceDataError, unknown_name
from benchmark.papers.claims import Claim
from benchmark.papers.numbers import (
    Figure,
    FootnoteRule,
    Name,
    PrintedTable,
    PublishedNumber,
    Text,
)
from benchmark.papers.problems import paper_problems
from benchmark.papers.reading import Closed, read_csv, read_own, read_yaml
from benchmark.papers.vocabulary import Condition, Method, Vocabulary, load_vocabulary
from benchmark.study.data_files import FIDELITY, PACKAGE, PAPER, paper_folders, published_names
from benchmark.study.model import JOINT

THIS_SUITE = "this suite"  # where the source of an own claim begins
# The change of a score that our value is expected to make, in points; judged, not measured. An
# option with "no effect" cannot act; "none" is for one that acts as paper or code say.
Effect = Literal["no effect", "none", "below 0.3", "0.3 to 1", "above 1", "unknown"]


@dataclass(frozen=True)
class EpochRule(Closed):
    """Which epoch a paper's numbers are of, and where that is known from.

    lead   the split whose epoch is that of all splits of a run; each has its own without it
    """

    rule: Literal["last", "one_best", "best_recall_at_1"]
    why: Text
    lead: str = ""


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
class Remark(Closed):
    """What a paper says against itself of the rows that have these values."""

    rows: Mapping[str, Any]
    text: Text


def _as_in_recipes(value: str) -> str:
    """Return a text that is empty or a value as recipes have them, with which it is compared."""
    try:
        if not value or parse_yaml(value).lines:
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
        """Return whether the row holds for this recipe."""
        return any(fnmatch(recipe, each) for each in self.recipe.split())

    def in_repository(self, repository: str) -> "Fact":
        """Return the fact as far as a line of this repository shows it; "": of any."""
        places = [each for each in self.code_at.split() if each.startswith(repository)]
        code = self.code if places or not self.code_at else ""
        return replace(self, code=code, code_at=" ".join(places))

    def is_about(self, item: str) -> bool:
        """Return whether the row holds for this value."""
        return any(fnmatch(item, each) for each in self.item.split())


def read_facts(folder: Path, problems: list[str]) -> tuple[Fact, ...]:
    """Return the facts of a folder, none without a file; add what is wrong to ``problems``."""
    path = folder / FIDELITY
    return tuple(read_csv(path, Fact, problems)) if path.exists() else ()


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
    remarks: tuple[Remark, ...] = ()

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

    def files(self, kind: str) -> list[str]:
        """Return the names of the files of the paper's tables, or of its figures."""
        if kind == "figure":
            return [each.name for each in self.figures]
        return [f"{self.source}_{name}" for name in self.tables]

    def remarks_on(self, number: PublishedNumber) -> list[str]:
        """Return what the paper says against itself of one of its numbers."""
        return [" ".join(each.text.split()) for each in self.remarks if number.fits(each.rows)]

    def table(self, name: str, source: str = "") -> list[PublishedNumber]:
        """Return the numbers of one printed table, in the order of the print."""
        source = source or self.source
        return [each for each in self.numbers if (each.source, each.table) == (source, name)]


def load_papers() -> Mapping[str, Paper]:
    """Return all papers by key; raise ReferenceDataError with every problem of the user's own."""
    return _load(tuple(paper_folders().values()))


@functools.cache
def _load(folders: tuple[Path, ...]) -> Mapping[str, Paper]:
    problems: list[str] = []
    papers = [read_paper(folder, problems) for folder in folders]
    found = {paper.key: paper for paper in papers if paper is not None}
    own = [paper for paper in found.values() if paper.folder.parent != PACKAGE]
    problems += [line for paper in own for line in paper_problems(paper, found)]
    if problems:
        raise ReferenceDataError("\n".join(problems))
    return found


def check_papers() -> None:
    """Check all papers, those of this repository as well; raise ReferenceDataError."""
    papers = load_papers()
    if lines := [line for each in papers.values() for line in paper_problems(each, papers)]:
        raise ReferenceDataError("\n".join(lines))


def read_paper(folder: Path, problems: list[str]) -> Paper | None:
    """Return the paper in ``folder``, adding what is wrong with it to ``problems``."""
    before = len(problems)
    about = read_yaml(folder / PAPER, PaperFile, problems)
    listed: dict[str, tuple[Any, ...]] = {}  # files that hold one list, under their own name
    for name, kind in (
        ("implied", Implied),
        ("outside", Outside),
        ("footnotes", FootnoteRule),
        ("remarks", Remark),
    ):
        file = make_dataclass(name, [(name, tuple[kind, ...])], bases=(Closed,), frozen=True)  # type: ignore[valid-type]
        found = read_yaml(folder / f"{name}.yaml", file, problems)
        listed[name] = () if found is None else getattr(found, name)
    claims = read_yaml(folder / "claims.yaml", dict[Name, Claim], problems) or {}
    tables = read_yaml(folder / "tables.yaml", dict[str, PrintedTable], problems) or {}
    figures = read_yaml(folder / "figures.yaml", dict[Name, Figure], problems) or {}
    versions = ("version",) if about and about.versions else ()
    facts = read_facts(folder, problems)
    numbers = read_csv(folder / "results.csv", PublishedNumber, problems, versions)
    if about is None or len(problems) > before:
        return None
    shared = load_vocabulary()
    own = {key: {**shared.names.get(key, {}), **names} for key, names in about.names.items()}
    words = replace(  # with the paper's own words, which go first
        shared,
        methods={**shared.methods, **about.methods},
        conditions={**shared.conditions, **about.conditions},
        names={**shared.names, **own},
    )
    paper = Paper(folder.name, folder, about, words, (), (), tables, (), facts=facts, **listed)
    return replace(
        paper,
        numbers=tuple(_completed(each, paper) for each in numbers),
        claims=tuple(each.resolved(name, paper.source, words) for name, each in claims.items()),
        figures=tuple(
            replace(each, name=f"{paper.source}_{name}", source=paper.source)
            for name, each in figures.items()
        ),
    )


def _completed(number: PublishedNumber, paper: Paper) -> PublishedNumber:
    """Return a number with what the folder and the vocabulary say about it."""
    words, source = paper.vocabulary, paper.key + number.version
    method = words.methods.get(number.method, Method(number.method))
    dataset = words.datasets.get(number.dataset, number.dataset)
    number = replace(number, source=source, loss=method.loss, dataset=dataset)
    means = {**method.means}
    for entry in paper.implied:
        if number.fits(entry.rows):
            means |= {key: str(word) for key, word in entry.means.items()}
    reasons = (entry.reason for entry in paper.outside if number.fits(entry.rows))
    return replace(number, means=means, outside=" ".join(next(reasons, "").split()))


# What all papers together know.


def paper_of(source: str) -> Paper | None:
    """Return the paper that a source such as "roadmap2021v2" is a version of."""
    return next((paper for paper in load_papers().values() if source in paper.names), None)


def asked_numbers(names: Iterable[str]) -> list[PublishedNumber]:
    """Return the reproducible numbers of the tables in ``names`` ("paper" or "paper/table").

    A paper's name asks for what its figures and text print, too, where a verdict can judge it.
    Raise ReferenceDataError for an unknown name.
    """
    asked, known = list(names), published_names()
    for name in asked:
        if name not in known:
            words = unknown_name("published table", name, known)
            raise ReferenceDataError(f"references.published: {words}")
    return [
        number
        for paper in load_papers().values()
        for number in paper.numbers
        if number.countable or number.judged
        if {number.source, f"{number.source}/{number.table}"} & {*asked}
    ]


def countable_numbers(*, beside: bool = False) -> list[PublishedNumber]:
    """Return the numbers that studies are to cover: of the version of each paper that counts.

    ``beside``: those that figures and running text print, instead of those of tables.
    """
    return [
        number
        for paper in load_papers().values()
        for number in paper.numbers
        if number.reproducible and number.source == paper.source and number.countable != beside
    ]


def arranged_tables(names: Iterable[str]) -> list[tuple[Paper, str]]:
    """Return the arranged tables, as (paper, table), among ``names`` ("paper" or "paper/table")."""
    names = set(names)
    return [
        (paper, table)
        for paper in load_papers().values()
        for table in paper.tables
        if names & {paper.source, f"{paper.source}/{table}"}
    ]


@functools.cache
def own_claims() -> Mapping[str, tuple[Claim, ...]]:
    """Return the claims of ``claims.yaml``, which no paper prints, by study."""
    words = load_vocabulary()
    read = read_own(PACKAGE / "claims.yaml", dict[str, dict[Name, Claim]])
    return {
        study: tuple(
            claim.resolved(name, f"{THIS_SUITE}, study {study}", words)
            for name, claim in claims.items()
        )
        for study, claims in read.items()
    }


def claims_of(study: str | None = None) -> tuple[Claim, ...]:
    """Return the claims of all papers, then those that no paper prints: of a study, or all."""
    own = own_claims()
    names = own if study is None else [study.partition(JOINT)[0]]
    papers = (claim for paper in load_papers().values() for claim in paper.claims)
    return (*papers, *(claim for name in names for claim in own.get(name, ())))


@functools.cache
def sweep_figures() -> tuple[Figure, ...]:
    """Return the figures of ``sweeps.yaml``, which no paper prints."""
    read = read_own(PACKAGE / "sweeps.yaml", dict[Name, Figure])
    return tuple(replace(each, name=name) for name, each in read.items())


def all_figures() -> tuple[Figure, ...]:
    """Return the figures of all papers, then those that no paper prints."""
    return (*(each for paper in load_papers().values() for each in paper.figures), *sweep_figures())


def vocabulary_of(source: str) -> Vocabulary:
    """Return the vocabulary of a paper: the shared one with the paper's own words."""
    paper = paper_of(source)
    return paper.vocabulary if paper else load_vocabulary()


def cite(source: str, table: str) -> str:
    """Return a printed table, figure or section for people: "ROADMAP, table 1"."""
    words = {"table": "table", "fig": "figure", "text_": "section"}
    prefix = next((each for each in words if table.startswith(each)), "")
    return f"{paper_name(source)}, {words.get(prefix, 'table')} {table.removeprefix(prefix)}"


def cite_statement(source: str, stated_in: str) -> str:
    """Return where a claim is stated: "section 6.4, table 5" becomes "Smooth-AP, table 5"."""
    printed = re.search(r"(table|figure)s? .*", stated_in)
    return f"{paper_name(source)}, {printed.group() if printed else stated_in}"


def paper_name(source: str) -> str:
    """Return a paper, in one of its versions, for people: "ROADMAP (first version)"."""
    paper = paper_of(source)
    return paper.names[source] if paper else source


class Footnote(NamedTuple):
    """Another printed value of the same quantity, and where it stands."""

    value: str
    text: str


def footnotes(paper: Paper, table: str) -> dict[int, Footnote]:
    """Return {line of a published number: its footnote} for one printed table."""
    quantity = attrgetter("dataset", "protocol", "metric", "loss")
    found: dict[int, Footnote] = {}
    for rule in (each for each in paper.footnotes if each.at == table):
        source, _, other_table = rule.also.partition("/")
        other = paper_of(source)
        there = other.table(other_table, source) if other else []
        for number in (each for each in paper.table(table) if each.fits(rule.where)):
            same = [
                each
                for each in there
                if each.fits(rule.also_where) and quantity(each) == quantity(number)
            ]
            if len(same) == 1 and same[0].value != number.value:
                more = f": {rule.text}" if rule.text else ""
                text = f"The second value stands in {cite(source, other_table)}{more}."
                found[number.line] = Footnote(same[0].text, text)
    return found
