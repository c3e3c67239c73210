"""Footnotes: every rule finds two printed values that differ, and says where the other one
stands."""

from __future__ import annotations

import dataclasses

import pytest
from paper_folders import changed, problems, write_paper

from benchmark.core.errors import ReferenceDataError
from benchmark.papers.paper import cite, footnotes, load_papers


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


def test_a_footnote_names_columns_and_values_that_its_table_has(tmp_path):
    for number, (where, words) in enumerate(
        (
            ("row_lable: Toy", "unknown column 'row_lable'; did you mean 'row_label'?"),
            ("row_label: Tyo", "chooses no row of table1; check its values"),
        )
    ):
        rule = changed("footnotes.yaml", "row_label: Toy", where)
        text = problems(tmp_path / str(number), footnotes=rule)
        assert f"footnotes.yaml: footnotes.0.where  {words}" in text


def test_the_rows_of_the_other_table_are_checked_too(tmp_path, monkeypatch):
    for number, (where, words) in enumerate(
        (
            ("text: x", "unknown column 'text'"),
            ("dataset: nowhere", "chooses no row of smoothap2020/table2; check its values"),
        )
    ):
        rule = changed("footnotes.yaml", "table2}", f"table2, also_where: {{{where}}}}}")
        folder = tmp_path / str(number)
        write_paper(folder, footnotes=rule)
        monkeypatch.setenv("BENCHMARK_PLUGINS", str(folder))
        with pytest.raises(ReferenceDataError, match=r"footnotes\.0\.also_where  ") as caught:
            load_papers()
        assert words in str(caught.value)
