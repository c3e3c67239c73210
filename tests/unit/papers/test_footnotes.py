"""Footnotes: every rule finds two printed values that differ, and says where the other one
stands."""

from __future__ import annotations

import dataclasses

from benchmark.papers.library import cite, footnotes
from benchmark.papers.paper import load_papers


def test_every_footnote_rule_finds_two_values_that_differ():
    for paper in load_papers().values():
        for rule in paper.footnotes:
            notes = footnotes(dataclasses.replace(paper, footnotes=(rule,)), rule.at)
            place = cite(*rule.also.split("/"))
            assert notes and all(place in note.text for note in notes.values()), rule


def test_a_footnote_holds_the_value_of_the_other_table():
    paper = load_papers()["roadmap2021"]
    (row,) = (
        each
        for each in paper.table("table2")
        if (each.loss, each.dataset, each.metric) == ("roadmap", "inaturalist", "recall_at_1")
    )
    note = footnotes(paper, "table2")[row.line]
    assert note.value == "64.2" and "ROADMAP (first version), table 5" in note.text
