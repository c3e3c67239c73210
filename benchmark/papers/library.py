"""What all papers together know: numbers by name, claims, figures, and how a place is cited."""

import functools
import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmark.core.errors import ReferenceDataError, unknown_name
from benchmark.papers.arrangements import Figure
from benchmark.papers.claims.model import Claim
from benchmark.papers.numbers import Name, PublishedNumber
from benchmark.papers.paper import Paper, load_papers, named_figures
from benchmark.papers.reading import read_own
from benchmark.papers.vocabulary import Vocabulary, load_vocabulary
from benchmark.study.data_files import published_names
from benchmark.study.documents import JOINT

SWEEPS = Path(__file__).parent / "sweeps.yaml"
OWN_CLAIMS = Path(__file__).parent / "claims.yaml"
THIS_SUITE = "this suite"  # where the source of an own claim begins
_PARTS = {"table": "table", "fig": "figure", "text_": "section"}


def paper_of(source: str) -> Paper | None:
    """Return the paper that a source such as "roadmap2021v2" is a version of."""
    return next((paper for paper in load_papers().values() if source in paper.names), None)


def asked_numbers(names: Iterable[str]) -> list[PublishedNumber]:
    """Return the reproducible numbers of the tables in ``names`` ("paper" or "paper/table").

    Figures and running text repeat the tables and are left out. Raise ReferenceDataError for an
    unknown name.
    """
    names, known = list(names), published_names()
    for name in names:
        if name not in known:
            words = unknown_name("published table", name, known)
            raise ReferenceDataError(f"references.published: {words}")
    return [
        number
        for paper in load_papers().values()
        for number in paper.numbers
        if number.countable
        and (number.source in names or f"{number.source}/{number.table}" in names)
    ]


def countable_numbers() -> list[PublishedNumber]:
    """Return the numbers that studies are to cover: of the version of each paper that counts."""
    return [
        number
        for paper in load_papers().values()
        for number in paper.numbers
        if number.countable and number.source == paper.source
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


def paper_claims() -> tuple[Claim, ...]:
    """Return the claims of all papers."""
    return tuple(claim for paper in load_papers().values() for claim in paper.claims)


@functools.cache
def own_claims() -> Mapping[str, tuple[Claim, ...]]:
    """Return the claims of ``claims.yaml``, which no paper prints, by study."""
    words = load_vocabulary()
    read = read_own(OWN_CLAIMS, dict[str, dict[Name, Claim]])
    return {
        study: tuple(
            claim.resolved(name, f"{THIS_SUITE}, study {study}", words)
            for name, claim in claims.items()
        )
        for study, claims in read.items()
    }


def claims_of(study: str) -> tuple[Claim, ...]:
    """Return the claims that a study is asked: those of all papers, and its own."""
    return (*paper_claims(), *own_claims().get(study.partition(JOINT)[0], ()))


def all_claims() -> tuple[Claim, ...]:
    """Return the claims of all papers, then those that no paper prints."""
    return (*paper_claims(), *itertools.chain.from_iterable(own_claims().values()))


@functools.cache
def sweep_figures() -> tuple[Figure, ...]:
    """Return the figures of ``sweeps.yaml``, which no paper prints."""
    return named_figures(read_own(SWEEPS, dict[Name, Figure]), "")


def all_figures() -> tuple[Figure, ...]:
    """Return the figures of all papers, then those that no paper prints."""
    return (*(each for paper in load_papers().values() for each in paper.figures), *sweep_figures())


def vocabulary_of(source: str) -> Vocabulary:
    """Return the vocabulary of a paper: the shared one with the paper's own words."""
    paper = paper_of(source)
    return paper.vocabulary if paper else load_vocabulary()


def cite(source: str, table: str) -> str:
    """Return a printed table, figure or section for people: "ROADMAP, table 1"."""
    prefix, word = next(
        ((prefix, word) for prefix, word in _PARTS.items() if table.startswith(prefix)),
        ("", "table"),
    )
    return f"{paper_name(source)}, {word} {table.removeprefix(prefix)}"


def cite_statement(source: str, stated_in: str) -> str:
    """Return where a claim is stated: "section 6.4, table 5" becomes "Smooth-AP, table 5"."""
    printed = re.search(r"(table|figure)s? .*", stated_in)
    return f"{paper_name(source)}, {printed.group() if printed else stated_in}"


def paper_name(source: str) -> str:
    """Return a paper, in one of its versions, for people: "ROADMAP (first version)"."""
    paper = paper_of(source)
    return paper.names[source] if paper else source


@dataclass(frozen=True)
class Footnote:
    """Another printed value of the same quantity, and where it stands."""

    value: str
    text: str


def footnotes(paper: Paper, table: str) -> dict[int, Footnote]:
    """Return {line of a published number: its footnote} for one printed table."""
    found: dict[int, Footnote] = {}
    for rule in paper.footnotes:
        if rule.at != table:
            continue
        source, _, other_table = rule.also.partition("/")
        other = paper_of(source)
        others = other.table(other_table, source) if other else []
        there = [each for each in others if each.fits(rule.also_where)]
        for number in paper.table(table):
            same = [each for each in there if _quantity(each) == _quantity(number)]
            if number.fits(rule.where) and len(same) == 1 and same[0].value != number.value:
                more = f": {rule.text}" if rule.text else ""
                text = f"The second value stands in {cite(source, other_table)}{more}."
                found[number.line] = Footnote(same[0].text, text)
    return found


def _quantity(number: PublishedNumber) -> tuple[str, str, str, str]:
    return number.dataset, number.protocol, number.metric, number.loss
