"""The ledger of recipes beside the papers and their authors' code."""

from __future__ import annotations

from dataclasses import replace

import pytest
from paper_folders import refused_by, write_paper

from benchmark.core.errors import ReferenceDataError
from benchmark.papers.fidelity import Row, as_text, ledger, study_ledger
from benchmark.papers.paper import Fact, read_facts
from benchmark.study import load_study

PAPER_STUDIES = ("fast_ap", "listwise", "roadmap", "smooth_ap")


def fact(item, code="", effect="none", recipe="made_up", paper="", reason=""):
    return Fact(recipe, item, paper, "", code, "", effect, reason)


def contradictions(rows: list[Row]) -> list[str]:
    """Return what the effects of rows say against their values."""
    return [
        f"{row.recipe}: {row.item} is {row.ours}, authors {row.code or row.paper}: equal "
        f"'{row.equal}' does not go with the effect '{row.effect}'"
        for row in rows
        if (row.equal == "yes") == row.deviates and row.equal != "not stated"
    ]


@pytest.mark.parametrize("name", PAPER_STUDIES)
def test_every_value_of_a_papers_recipes_has_a_row_that_agrees_with_its_effect(name):
    rows = study_ledger(load_study(name))
    assert rows
    assert contradictions(rows) == []
    assert all(row.reason for row in rows if row.deviates)


def test_a_value_without_a_row_is_an_error_that_names_it():
    with pytest.raises(ReferenceDataError, match=r"made_up.*optimizer\.lr"):
        ledger("made_up", {"optimizer.lr": 0.1, "input.flip": True}, [fact("input.flip", "true")])


def test_a_recipe_of_no_paper_has_no_rows():
    assert (
        ledger("other", {"optimizer.lr": 0.1}, [fact("optimizer.lr"), fact("*", recipe="*")]) == []
    )


def test_values_are_compared_as_data_and_the_code_goes_before_the_paper():
    facts = [fact("optimizer.lr", "1.0e-5", paper="2.0e-5"), fact("input.flip", paper="true")]
    rows = ledger("made_up", {"optimizer.lr": 0.00001, "input.flip": False}, facts)
    assert [row.equal for row in rows] == ["yes", "no"]
    assert contradictions(rows) == [
        "made_up: input.flip is false, authors true: equal 'no' does not go with the effect 'none'"
    ]


def test_a_value_without_a_row_is_said_before_anything_starts(tmp_path):
    folder = write_paper(tmp_path)
    rows = HEADER + "glyphs_smoke,optimizer.lr,0.1,section 1,,,below 0.3,made up\n"
    (folder / "fidelity.csv").write_text(rows)
    said = refused_by("snakemake", "-n", "--config", "study=smoke", plugins=tmp_path)
    assert "recipe 'glyphs_smoke': no row of any fidelity.csv is about model" in said


HEADER = "recipe,item,paper,stated_in,code,code_at,effect,reason\n"


@pytest.mark.parametrize("column", ["paper", "code"])
@pytest.mark.parametrize(
    "text",
    ["lr: 0.1: cosine", "[1", "@ 256", "10: %", "!!python/object/apply:os.system [id]"],
)
def test_a_text_that_no_recipe_could_hold_is_named_by_file_line_and_column(tmp_path, text, column):
    cells = {"paper": "", "code": "", column: text}
    rows = f'r,a.b,1,,2,,none,\nr,optimizer.lr,"{cells["paper"]}",,"{cells["code"]}",,none,\n'
    (tmp_path / "fidelity.csv").write_text(HEADER + rows)
    problems: list[str] = []
    read_facts(tmp_path, problems)
    assert len(problems) == 1, problems
    assert f"fidelity.csv, line 3, column {column}: is not a value of a recipe" in problems[0]
    assert "put a text into quotes" in problems[0] and len(problems[0]) < 500


def test_a_date_and_a_short_number_are_read_as_recipes_are(tmp_path):
    facts = [fact("a.day", "2001-99-99"), fact("a.lr", "1e-5")]
    rows = ledger("made_up", {"a.day": "2001-99-99", "a.lr": 0.00001}, facts)
    assert [row.equal for row in rows] == ["yes", "yes"]


def test_the_last_of_several_facts_counts():
    facts = [fact("optimizer.*", "1"), fact("optimizer.lr", "2")]
    rows = ledger("made_up", {"optimizer.lr": 2, "optimizer.momentum": 1}, facts)
    assert [row.equal for row in rows] == ["yes", "yes"]


def test_a_change_of_a_recipe_is_noticed():
    study = load_study("fast_ap")
    block = study.blocks[0]
    changed = replace(
        block, recipe=replace(block.recipe, optimizer=replace(block.recipe.optimizer, lr=1e-4))
    )
    rows = study_ledger(replace(study, blocks=(changed,)))
    assert [line.split(" is ")[0] for line in contradictions(rows)] == [
        f"{block.recipe_name}: optimizer.lr"
    ]


def test_the_text_counts_what_may_move_a_score():
    facts = [fact("a.b", "1", "above 1", reason="why"), fact("a.c", "1")]
    rows = ledger("made_up", {"a.b": 2, "a.c": 1}, facts)
    text = as_text(rows, rows)
    assert "why" in text
    assert "1 may move a score, 1 of these by more than 0.3 points" in text


@pytest.mark.parametrize(
    ("effect", "deviates", "large"),
    [
        *(("no effect", False, False), ("none", False, False), ("below 0.3", True, False)),
        *(("0.3 to 1", True, True), ("above 1", True, True), ("unknown", True, True)),
    ],
)
def test_an_effect_says_whether_a_score_may_move(effect, deviates, large):
    [row] = ledger("made_up", {"a.b": 2}, [fact("a.b", effect=effect)])
    assert (row.deviates, row.large) == (deviates, large)
