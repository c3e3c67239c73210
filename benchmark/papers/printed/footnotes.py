"""The footnotes of a printed table: values that are printed differently elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from benchmark.papers.library import cite, paper_of
from benchmark.papers.numbers import PublishedNumber
from benchmark.papers.paper import Paper


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
