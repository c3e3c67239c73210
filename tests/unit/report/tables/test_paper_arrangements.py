from __future__ import annotations

import pytest

from benchmark.core.errors import ReferenceDataError
from benchmark.papers.references import published_names, published_results
from benchmark.report.tables.papers.arrangement import (
    arrangements,
    arrangements_for,
    footnote_rules,
    place,
    place_in_short,
    read_arrangements,
)
from benchmark.report.tables.papers.footnotes import footnotes, printed

ASKED = {
    "roadmap2021v2": [
        "table1",
        "table2",
        "table3",
        "table5",
        "table6",
        "table7",
        "table8",
        "table10",
    ],
    "smoothap2020": ["table2", "table3", "tableS1"],
    "fastap2019": ["table1", "table2", "table3", "table5", "table6"],
    "listwise2019": ["table1", "table2"],
}


def rows_of(key):
    paper, table = key.split("/")
    results = published_results()
    return results[(results["paper"] == paper) & (results["table"] == table)]


def test_every_printed_table_that_a_study_may_name_is_arranged():
    for paper, tables in ASKED.items():
        assert {f"{paper}/{table}" for table in tables} <= set(arrangements())
    assert {key for key in arrangements() if key not in published_names()} == set()


def test_the_place_of_a_claim_is_its_paper_and_what_is_printed_there():
    assert place_in_short("smoothap2020", "section 6.4, table 5") == "Smooth-AP, table 5"
    assert (
        place_in_short("roadmap2021v2", "section 4.2, tables 4, 6 and 7")
        == "ROADMAP, tables 4, 6 and 7"
    )
    assert place_in_short("fastap2019", "section 5.3") == "FastAP, section 5.3"


@pytest.mark.parametrize("key", list(arrangements()))
def test_each_published_number_has_a_cell_of_its_own(key):
    from benchmark.report.tables.papers.render import _keys

    rows = rows_of(key).to_dict("records")
    assert len({_keys(arrangements()[key], row) for row in rows}) == len(rows)


def test_a_study_gets_the_tables_of_a_paper_or_single_ones():
    assert [each.key for each in arrangements_for(("roadmap2021v2/table3",))] == [
        "roadmap2021v2/table3"
    ]
    assert len(arrangements_for(("fastap2019",))) == len(ASKED["fastap2019"])


def test_every_footnote_rule_finds_two_values_that_differ():
    for rule in footnote_rules():
        arrangement = arrangements()[rule["at"]]
        found = footnotes(arrangement, rows_of(rule["at"]))
        assert any(place(*rule["also"].split("/")) in note.text for note in found.values()), rule


def test_a_footnote_holds_the_value_of_the_other_table():
    rows = rows_of("roadmap2021v2/table2")
    row = rows[
        (rows["loss"] == "roadmap")
        & (rows["dataset"] == "inaturalist")
        & (rows["metric"] == "recall_at_1")
    ]
    note = footnotes(arrangements()["roadmap2021v2/table2"], rows)[row["line"].iloc[0]]
    assert note.value == "64.2" and "ROADMAP (first version), table 5" in note.text


def test_values_keep_the_digits_of_the_print():
    rows = rows_of("roadmap2021v2/table1")
    assert printed(rows[rows["value"] == 82].iloc[0].to_dict()) == "82.0"
    minutes = (
        rows_of("roadmap2021v2/table2").query("metric == 'minutes_per_epoch'").iloc[0].to_dict()
    )
    assert printed(minutes) == "6"


def test_a_wrong_arrangement_is_refused_with_every_problem(tmp_path):
    path = tmp_path / "fastap2019.yaml"
    path.write_text(
        "paper: x\ntables: {table99: {title: t, rows: [row], columns: [metric], colour: red}}"
    )
    with pytest.raises(ReferenceDataError) as error:
        read_arrangements(path)
    for part in (str(path), "table99", "'row'", "colour"):
        assert part in str(error.value)
    path.write_text("tables: 3")
    with pytest.raises(ReferenceDataError, match="needs the keys paper"):
        read_arrangements(path)
