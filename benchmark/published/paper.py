"""Find numbers, claims, figures and names among all papers."""

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from benchmark.core.files import adapter
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


@functools.cache
def sweep_figures() -> tuple[Figure, ...]:
    """Return the figures of ``sweeps.yaml``, which no paper prints."""
    read = read_own(PACKAGE / "sweeps.yaml", dict[Name, Figure])
    return tuple(replace(figure, name=name) for name, figure in read.items())


class Footnote(NamedTuple):
    """Another printed value of the same quantity, and where it stands."""

    value: str
    text: str


class Papers(dict[str, Paper]):
    """All papers by key, and what is found among them: numbers, claims, figures and names."""

    def __init__(self, papers: Mapping[str, Paper]):
        super().__init__(papers)
        self._by_source: dict[str, Paper] = {}
        self._tables: dict[str, list[PublishedNumber]] = defaultdict(list)
        for paper in self.values():
            self._by_source |= dict.fromkeys(paper.names, paper)
            for number in paper.numbers:
                self._tables[f"{number.source}/{number.table}"].append(number)

    def of(self, source: str) -> Paper | None:
        """Return the paper that a source such as "roadmap2021v2" is a version of."""
        return self._by_source.get(source)

    def asked(self, names: Iterable[str]) -> list[PublishedNumber]:
        """Return the reproducible numbers of the tables in ``names`` ("paper" or "paper/table").

        A paper's name asks for what its figures and text print, too, where a verdict can judge it.
        """
        asked = set(names)
        sources = {name.partition("/")[0] for name in asked}
        found = []
        for paper in self.values():
            if sources.isdisjoint(paper.names):
                continue
            for number in paper.numbers:
                if (number.countable or number.judged) and asked & number.places:
                    found.append(number)
        return found

    def countable(self, *, beside: bool = False) -> list[PublishedNumber]:
        """Return the numbers that studies are to cover: of the version of each that counts.

        ``beside``: the numbers in figures and running text instead of the numbers in tables.
        """
        numbers = []
        for paper in self.values():
            for number in paper.numbers:
                counts = number.reproducible and number.source == paper.source
                if counts and number.countable != beside:
                    numbers.append(number)
        return numbers

    def table(self, name: str) -> list[PublishedNumber]:
        """Return the numbers of a printed table, "paper/table", in the order of the print."""
        return self._tables.get(name, [])

    def arranged(self, names: Iterable[str]) -> list[tuple[Paper, str]]:
        """Return the arranged tables, as (paper, table), among ``names``, as ``asked`` has them."""
        asked = set(names)
        arranged = []
        for paper in self.values():
            for table in paper.tables:
                if paper.source in asked or f"{paper.source}/{table}" in asked:
                    arranged.append((paper, table))
        return arranged

    def claims(self, study: str | None = None) -> tuple[Claim, ...]:
        """Return the claims of all papers, then the claims of ``study`` or of all studies."""
        claims: list[Claim] = []
        for paper in self.values():
            claims += paper.claims.values()
        of_studies = own_claims()
        for name in of_studies if study is None else [study.partition(JOINT)[0]]:
            claims += of_studies.get(name, ())
        return tuple(claims)

    def figures(self) -> tuple[Figure, ...]:
        """Return the figures of all papers, then those that no paper prints."""
        figures: list[Figure] = []
        for paper in self.values():
            figures += paper.figures.values()
        return (*figures, *sweep_figures())

    def vocabulary(self, source: str) -> Vocabulary:
        """Return the vocabulary of a paper: the shared one with the paper's own words."""
        paper = self.of(source)
        return paper.vocabulary if paper else load_vocabulary()

    def name(self, source: str) -> str:
        """Return a paper, in one of its versions, for people: "ROADMAP (first version)"."""
        paper = self.of(source)
        return paper.names[source] if paper else source

    def cite(self, source: str, table: str) -> str:
        """Return a printed table, figure or section for people: "ROADMAP, table 1"."""
        paper = self.of(source)
        elsewhere = paper.about.elsewhere if paper else {}
        place = elsewhere.get(table, f"table {table.removeprefix('table')}")
        return f"{self.name(source)}, {place}"

    def in_print(self, source: str, table: str) -> tuple[str, int, list[tuple[int, str]]]:
        """Return what sorts "table2" of a paper before "table10", and both before its figures."""
        paper = self.of(source)
        elsewhere = [*paper.about.elsewhere] if paper else []
        at = elsewhere.index(table) if table in elsewhere else -1
        parts = re.findall(r"(\d+)|([^\d]+)", table)
        return source, at, [(int(digits or 0), letters) for digits, letters in parts]

    def cite_statement(self, source: str, stated_in: str) -> str:
        """Return where a claim is stated: "section 6.4, table 5" becomes "Smooth-AP, table 5"."""
        printed = re.search(r"(table|figure)s? .*", stated_in)
        return f"{self.name(source)}, {printed.group() if printed else stated_in}"

    def footnotes(self, paper: Paper, table: str) -> dict[int, Footnote]:
        """Return {line of a published number: its footnote} for one printed table."""
        quantity = attrgetter("dataset", "protocol", "metric", "loss")
        notes: dict[int, Footnote] = {}
        for rule in paper.footnotes:
            if rule.at != table:
                continue
            others = [other for other in self.table(rule.also) if other.fits(rule.also_where)]
            for number in paper.table(table):
                if not number.fits(rule.where):
                    continue
                same = [other for other in others if quantity(other) == quantity(number)]
                if len(same) == 1 and same[0].value != number.value:
                    more = f": {rule.text}" if rule.text else ""
                    place = self.cite(*rule.also.split("/"))
                    text = f"The second value stands in {place}{more}."
                    notes[number.line] = Footnote(same[0].text, text)
        return notes
