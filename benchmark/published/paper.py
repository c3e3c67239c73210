"""Find numbers, claims, figures and names among all papers."""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from benchmark.core.files import adapter
from benchmark.published.loading import load_papers
from benchmark.published.schema import Claim, Fact, Figure, Name, Paper, PublishedNumber
from benchmark.published.vocabulary import Vocabulary, load_vocabulary, read_own
from benchmark.study.data_files import FIDELITY, PACKAGE, read_rows
from benchmark.study.model import JOINT

THIS_SUITE = "this suite"  # where the source of an own claim begins


@functools.cache
def shared_facts() -> tuple[Fact, ...]:
    """Return the facts about recipes that belong to no paper."""
    _, rows = read_rows(PACKAGE / FIDELITY)
    facts: tuple[Fact, ...] = adapter(tuple[Fact, ...]).validate_python(rows)
    return facts


def paper_of(source: str) -> Paper | None:
    """Return the paper that a source such as "roadmap2021v2" is a version of."""
    for paper in load_papers().values():
        if source in paper.names:
            return paper
    return None


def _all_numbers() -> Iterator[PublishedNumber]:
    for paper in load_papers().values():
        yield from paper.numbers


def asked_numbers(names: Iterable[str]) -> list[PublishedNumber]:
    """Return the reproducible numbers of the tables in ``names`` ("paper" or "paper/table").

    A paper's name asks for what its figures and text print, too, where a verdict can judge it.
    """
    asked = set(names)
    return [
        number
        for number in _all_numbers()
        if (number.countable or number.judged) and asked & number.places
    ]


def countable_numbers(*, beside: bool = False) -> list[PublishedNumber]:
    """Return the numbers that studies are to cover: of the version of each paper that counts.

    ``beside``: the numbers in figures and running text instead of the numbers in tables.
    """
    numbers = []
    for paper in load_papers().values():
        for number in paper.numbers:
            counts = number.reproducible and number.source == paper.source
            if counts and number.countable != beside:
                numbers.append(number)
    return numbers


def numbers_of(table: str) -> list[PublishedNumber]:
    """Return the numbers of a printed table, "paper/table", in the order of the print."""
    return [number for number in _all_numbers() if table in number.places]


def arranged_tables(names: Iterable[str]) -> list[tuple[Paper, str]]:
    """Return the arranged tables, as (paper, table), among ``names`` ("paper" or "paper/table")."""
    asked = set(names)
    arranged = []
    for paper in load_papers().values():
        for table in paper.tables:
            if paper.source in asked or f"{paper.source}/{table}" in asked:
                arranged.append((paper, table))
    return arranged


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
    """Return the claims of all papers, then the claims of ``study`` or of all studies."""
    claims: list[Claim] = []
    for paper in load_papers().values():
        claims += paper.claims.values()
    of_studies = own_claims()
    for name in of_studies if study is None else [study.partition(JOINT)[0]]:
        claims += of_studies.get(name, ())
    return tuple(claims)


@functools.cache
def sweep_figures() -> tuple[Figure, ...]:
    """Return the figures of ``sweeps.yaml``, which no paper prints."""
    read = read_own(PACKAGE / "sweeps.yaml", dict[Name, Figure])
    return tuple(replace(figure, name=name) for name, figure in read.items())


def all_figures() -> tuple[Figure, ...]:
    """Return the figures of all papers, then those that no paper prints."""
    figures: list[Figure] = []
    for paper in load_papers().values():
        figures += paper.figures.values()
    return (*figures, *sweep_figures())


def vocabulary_of(source: str) -> Vocabulary:
    """Return the vocabulary of a paper: the shared one with the paper's own words."""
    paper = paper_of(source)
    return paper.vocabulary if paper else load_vocabulary()


def cite(source: str, table: str) -> str:
    """Return a printed table, figure or section for people: "ROADMAP, table 1"."""
    paper = paper_of(source)
    elsewhere = paper.about.elsewhere if paper else {}
    place = elsewhere.get(table, f"table {table.removeprefix('table')}")
    return f"{paper_name(source)}, {place}"


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
    notes: dict[int, Footnote] = {}
    for rule in paper.footnotes:
        if rule.at != table:
            continue
        others = [other for other in numbers_of(rule.also) if other.fits(rule.also_where)]
        for number in paper.table(table):
            if not number.fits(rule.where):
                continue
            same = [other for other in others if quantity(other) == quantity(number)]
            if len(same) == 1 and same[0].value != number.value:
                more = f": {rule.text}" if rule.text else ""
                place = cite(*rule.also.split("/"))
                text = f"The second value stands in {place}{more}."
                notes[number.line] = Footnote(same[0].text, text)
    return notes
