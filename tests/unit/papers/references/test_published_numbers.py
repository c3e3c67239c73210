"""The published numbers: complete, typed, mapped to our names, and strict about slips."""

from __future__ import annotations

import csv

import pytest

from benchmark.core.errors import ReferenceDataError
from benchmark.papers.references import (
    asked_results,
    load_margins,
    load_published_table,
    published_names,
    published_results,
)
from benchmark.papers.references.margins import margin_of
from benchmark.papers.references.published import FOLDER, half_last_digit


@pytest.fixture(scope="module")
def table():
    return published_results()


@pytest.fixture
def edited(tmp_path):
    """Returns a function that writes results.csv with one cell of data row 0 changed."""

    def edit(column: str, text: str):
        with open(FOLDER / "results.csv", newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        rows[0][column] = text
        path = tmp_path / "results.csv"
        with open(path, "w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        return path

    return edit


def test_all_numbers_are_there_with_their_types(table):
    assert len(table) == 1445
    assert table["value"].notna().all() and table["points"].notna().equals(table["score"])


def test_a_known_row_carries_value_spread_and_number_of_runs(table):
    row = table.query(
        "paper == 'roadmap2021v2' and table == 'table5' and loss == 'fast_ap' and dataset == 'cub'"
        " and backbone == 'resnet50' and metric == 'recall_at_1'"
    ).iloc[0]
    assert (row["points"], row["sd_points"], row["n_runs"]) == (61.28, 0.37, 5)
    assert row["rounding"] == pytest.approx(0.005)


def test_methods_and_datasets_carry_our_names(table):
    assert {"smooth_ap", "sup_ap", "fast_ap", "proxy_nca", "normalized_softmax", "roadmap"} <= set(
        table["loss"]
    )
    assert not {"smoothap", "supap", "fastap"} & set(table["loss"])
    assert {"roxford5k", "rparis6k"} <= set(table["dataset"])


def test_fractions_become_points_and_hours_do_not(table):
    faces = table.query("paper == 'smoothap2020' and table == 'table5'").iloc[0]
    assert faces["unit"] == "fraction" and faces["points"] == pytest.approx(100 * faces["value"])
    assert table[table["unit"] == "hours"]["points"].isna().all()


def test_conditions_of_a_row_are_parsed_from_its_comment(table):
    rows = table.query("paper == 'fastap2019' and table == 'table5'")
    assert set(rows["condition"]) == {"sampling=random", "sampling=hard"}


def test_the_printed_tables_hold_528_numbers_that_can_be_reproduced():
    papers = ["fastap2019", "listwise2019", "smoothap2020", "roadmap2021v2"]
    assert len(asked_results(papers)) == 528
    assert set(asked_results(["roadmap2021v2/table3"])["table"]) == {"table3"}


def test_names_cover_papers_and_their_tables():
    assert {"roadmap2021v2", "roadmap2021v2/table3"} <= set(published_names())


def test_an_unknown_table_is_refused_with_the_nearest_name():
    with pytest.raises(ReferenceDataError, match="did you mean 'roadmap2021v2'"):
        asked_results(["roadmap2021v3"])


@pytest.mark.parametrize(
    ("column", "text", "words"),
    [
        ("value", "abc", "line 2, column value: 'abc' is not a finite number"),
        ("value", "", "column value: is empty"),
        ("value", "inf", "column value"),
        ("batch_size", "12.5", "column batch_size: '12.5' is not a whole number"),
        (
            "provenance",
            "owned",
            "column provenance: unknown provenance 'owned'; did you mean 'own'",
        ),
        ("unit", "percents", "did you mean 'percent'"),
        ("unit", "fraction", "outside 0 to 100 points"),
        ("metric", "", "column metric: is empty"),
    ],
)
def test_a_slip_is_named_by_file_line_and_column(edited, column, text, words):
    path = edited(column, text)
    with pytest.raises(ReferenceDataError, match=words) as caught:
        published_results(path)
    assert str(path) in str(caught.value)


def test_a_row_that_stands_twice_is_refused(tmp_path):
    lines = (FOLDER / "results.csv").read_text(encoding="utf-8").splitlines()
    path = tmp_path / "results.csv"
    path.write_text("\n".join([*lines[:4], lines[2]]), encoding="utf-8")
    with pytest.raises(ReferenceDataError, match="line 5, column paper: repeats line 3"):
        published_results(path)


def test_a_file_with_other_columns_or_torn_lines_is_refused(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text("paper,tabel\na,b\n")
    with pytest.raises(ReferenceDataError, match="unknown: tabel"):
        published_results(path)
    lines = (FOLDER / "results.csv").read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([lines[0], lines[1][:20]]))
    with pytest.raises(ReferenceDataError, match=r"line 2: .* fields instead of 16"):
        published_results(path)


def test_the_papers_own_statements_are_there():
    assert len(load_published_table("datasets")) == 54
    assert set(load_published_table("hyperparameters")["paper"]) >= {"fastap2019", "roadmap2021v2"}


@pytest.mark.parametrize(("printed", "half"), [("81.2", 0.05), ("62.45", 0.005), ("15", 0.5)])
def test_rounding_is_half_the_last_printed_digit(printed, half):
    assert half_last_digit(printed) == pytest.approx(half)


def test_margins_are_data_with_patterns_and_exact_names_first(tmp_path):
    path = tmp_path / "margins.yaml"
    path.write_text("recall_at_*: 1.0\nrecall_at_1: 0.5\n")
    margins = load_margins(path)
    assert [margin_of(name, margins) for name in ("recall_at_1", "recall_at_10", "map")] == [
        0.5,
        1.0,
        None,
    ]


def test_every_judged_published_metric_has_a_margin(table):
    margins = load_margins()
    assert all(margin_of(name, margins) for name in set(table[table["score"]]["metric"]))


@pytest.mark.parametrize("text", ["map: -1", "map: yes", "map: wide", "[]", "map: .inf", "map: [1"])
def test_margins_that_are_no_points_are_refused(tmp_path, text):
    path = tmp_path / "margins.yaml"
    path.write_text(text)
    with pytest.raises(ReferenceDataError, match=str(path)):
        load_margins(path)
