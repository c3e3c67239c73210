"""What all papers together know: numbers, claims, figures and their places, for those who ask."""

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from benchmark.core.files import adapter
from benchmark.papers.loading import load_papers
from benchmark.papers.schema import Claim, Fact, Figure, Name, Paper, PublishedNumber
from benchmark.papers.vocabulary import Vocabulary, load_vocabulary, read_own
from benchmark.study.data_files import FIDELITY, PACKAGE, read_rows
from benchmark.study.model import JOINT

THIS_SUITE = "this suite"  # where the source of an own claim begins


@functools.cache
def shared_facts() -> tuple[Fact, ...]:
    """Return the facts about recipes that are of no paper."""
    _, rows = read_rows(PACKAGE / FIDELITY)
    found: tuple[Fact, ...] = adapter(tuple[Fact, ...]).validate_python(rows)
    return found


def paper_of(source: str) -> Paper | None:
    """Return the paper that a source such as "roadmap2021v2" is a version of."""
    return next((paper for paper in load_papers().values() if source in paper.names), None)


def asked_numbers(names: Iterable[str]) -> list[PublishedNumber]:
    """Return the reproducible numbers of the tables in ``names`` ("paper" or "paper/table").

    A paper's name asks for what its figures and text print, too, where a verdict can judge it.
    """
    asked = set(names)
    return [
        number
        for paper in load_papers().values()
        for number in paper.numbers
        if (number.countable or number.judged) and asked & number.places
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
    asked = set(names)
    found = []
    for paper in load_papers().values():
        for table in paper.tables:
            if paper.source in asked or f"{paper.source}/{table}" in asked:
                found.append((paper, table))
    return found


@functools.cache
def own_claims() -> Mapping[str, tuple[Claim, ...]]:
    """Return the claims of ``claims.yaml``, which no paper prints, by study."""
    words = load_vocabulary()
    read = read_own(PACKAGE / "claims.yaml", dict[str, dict[Name, Claim]])
    resolved = {}
    for study, claims in read.items():
        source = f"{THIS_SUITE}, study {study}"
        resolved[study] = tuple(
            claim.resolved(name, source, words) for name, claim in claims.items()
        )
    return resolved


def claims_of(study: str | None = None) -> tuple[Claim, ...]:
    """Return the claims of all papers, then those that no paper prints: of a study, or all."""
    own = own_claims()
    names = own if study is None else [study.partition(JOINT)[0]]
    papers = (claim for paper in load_papers().values() for claim in paper.claims.values())
    return (*papers, *(claim for name in names for claim in own.get(name, ())))


@functools.cache
def sweep_figures() -> tuple[Figure, ...]:
    """Return the figures of ``sweeps.yaml``, which no paper prints."""
    read = read_own(PACKAGE / "sweeps.yaml", dict[Name, Figure])
    return tuple(replace(each, name=name) for name, each in read.items())


def all_figures() -> tuple[Figure, ...]:
    """Return the figures of all papers, then those that no paper prints."""
    return (
        *(each for paper in load_papers().values() for each in paper.figures.values()),
        *sweep_figures(),
    )


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
