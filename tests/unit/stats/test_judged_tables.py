"""A table of numbers judged at once: each row as a single number, Holm over all, bad files."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.errors import ConfigError, DataError
from benchmark.published.vocabulary import margin_of
from benchmark.stats.intervals import holm
from benchmark.stats.judged_table import MOST_ROWS, judge_table, read_cases
from benchmark.stats.judgement import judge, question
from benchmark.stats.reproduction import DRIFTED, UNDECIDED, UNTESTED

TABLE = """name,metric,ours_1,ours_2,published,published_n,spread
CUB,R@1,62.4,61.8,65.9,,
Cars,mAP@R,25.1,,25.4,5,0.2
SOP,map,70.4,70.6,70.30,,0.1
Far,Recall@10,80,,77.3,,0.5
Farther,R@1,80,,76.1,,0.5
Unknown,R@1,62.4,,65.9,,
"""
OPTIONS = ("n", "spread", "published_spread", "published_n", "margin")
DEFAULTS = {"metric": "recall_at_1"} | dict.fromkeys(OPTIONS)


@pytest.fixture
def file(tmp_path):
    """Return what writes a table and gives its path."""

    def write(text, encoding="utf-8"):
        path = tmp_path / "numbers.csv"
        path.write_text(text, encoding)
        return path

    return write


def problems(path, **defaults):
    with pytest.raises(ConfigError) as caught:
        read_cases(path, DEFAULTS | defaults, margin_of)
    return [(problem.line, problem.message) for problem in caught.value.problems]


def singles(family):
    """Return the answers to the rows of ``TABLE``, one by one."""
    cells = {
        "CUB": dict(ours=["62.4", "61.8"], published="65.9"),
        "Cars": dict(
            ours=["25.1"], published="25.4", metric="mAP@R", published_n="5", spread="0.2"
        ),
        "SOP": dict(ours=["70.4", "70.6"], published="70.30", metric="map", spread="0.1"),
        "Far": dict(ours=["80"], published="77.3", metric="R@10", spread="0.5"),
        "Farther": dict(ours=["80"], published="76.1", spread="0.5"),
        "Unknown": dict(ours=["62.4"], published="65.9"),
    }
    for name, texts in cells.items():
        case = question(default_margin=margin_of, **texts)
        yield name, judge(replace(case, family=family))


def test_each_row_is_what_a_single_number_of_the_family_is_but_for_holm(file):
    found = judge_table(read_cases(file(TABLE), DEFAULTS, margin_of))
    alone = dict(singles(6))
    assert [each["name"] for each in found] == list(alone)
    assert [each["metric"] for each in found] == ["R@1", "mAP@R", "mAP", "R@10", "R@1", "R@1"]
    same = ("difference", "margin", "ours", "published", "spread", "family")
    for each in found:
        single = alone[each["name"]]
        assert {key: each[key] for key in same} == {key: single[key] for key in same}
        if single["verdict"] != UNDECIDED:
            assert each["verdict"] == single["verdict"]
    tested = [each for each in found if each["test"]]
    tests = [alone[each["name"]]["test"] for each in tested]
    adjusted = holm([test["p_drift"] for test in tests], planned=6)
    for each, test, p_holm in zip(tested, tests, adjusted, strict=True):
        assert each["test"] == pytest.approx(test | {"p_holm": p_holm}, nan_ok=True)
        assert test["p_holm"] == pytest.approx(min(6 * test["p_drift"], 1))


def test_holm_calls_more_drifts_than_the_strictest_level(file):
    """The second smallest p counts five times, and not six times."""
    rows = {
        each["name"]: each for each in judge_table(read_cases(file(TABLE), DEFAULTS, margin_of))
    }
    alone = dict(singles(6))
    p = alone["Far"]["test"]["p_drift"]
    assert rows["Farther"]["verdict"] == alone["Farther"]["verdict"] == DRIFTED
    assert 5 * p < 0.05 < 6 * p, p
    assert rows["Far"]["test"]["p_holm"] == pytest.approx(5 * p)
    assert (alone["Far"]["verdict"], rows["Far"]["verdict"]) == (UNDECIDED, DRIFTED)


@pytest.mark.parametrize("sign", [";", "\t", ","])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_separators_and_spelling_of_headings_do_not_matter(file, sign, encoding):
    text = TABLE.replace("name,metric", "Name , Metric").replace("published_n", "Published N")
    text = text.replace(",", sign).replace("\n", "\r\n") + "\r\n"
    expected = read_cases(file(TABLE), DEFAULTS, margin_of)
    assert read_cases(file(text, encoding), DEFAULTS, margin_of) == expected


def test_options_stand_for_cells_that_are_empty_and_names_for_lines(file):
    rows = read_cases(
        file("ours,published,spread\n62.4,65.9,\n70,71,0.4\n"),
        DEFAULTS | {"spread": "0.3", "metric": "map"},
        margin_of,
    )
    assert [(row.name, row.metric) for row in rows] == [("line 2", "map"), ("line 3", "map")]
    assert [row.spread for row in rows] == [0.3, 0.4]


def test_all_problems_of_a_file_are_told_with_their_lines(file):
    found = problems(
        file(
            "name;metric;ours;published;published_n\n"
            "CUB;R@1;62,4;65.9;\n"
            "Cars;NMI;0.6;70;0\n"
            "y;R@1;;-3;\n"
        )
    )
    assert [line for line, _ in found] == [2, 3, 3, 3, 4, 4]
    for (_, message), words in zip(
        found,
        [
            "--ours: '62,4' is not a number; the decimal sign is a point",
            "--ours: 0.6 looks like a fraction",
            "--metric: unknown metric 'NMI'; known: map",
            "--published-n: '0' must be a whole number",
            "--ours is missing",
            "--published: -3 is not a score",
        ],
        strict=True,
    ):
        assert words in message


def test_columns_that_are_unknown_or_stand_twice_are_named(file):
    ((_, message),) = problems(file("name,publishd\nCUB,65.9\n"))
    assert "did you mean 'published'?" in message
    with pytest.raises(DataError, match="two columns have one heading"):
        read_cases(file("ours,published,n,n\n62.4,65.9,1,1\n"), DEFAULTS, margin_of)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"ours\n62.4\n", "--published is missing"),
        (b"published\n62.4\n", "--ours is missing"),
        (b"ours,published\n" + b"62.4,65.9\n" * (MOST_ROWS + 1), "1001 rows"),
    ],
)
def test_a_table_without_numbers_or_with_too_many_is_refused(tmp_path, content, words):
    path = tmp_path / "numbers.csv"
    path.write_bytes(content)
    assert any(words in message for _, message in problems(path))


@pytest.mark.parametrize(
    "content", [b"", "ours,published\n".encode("utf-16"), b'ours,published\n62.4,"65.9\n']
)
def test_a_file_that_is_no_table_is_refused(tmp_path, content):
    path = tmp_path / "numbers.csv"
    path.write_bytes(content)
    with pytest.raises(DataError):
        read_cases(path, DEFAULTS, margin_of)


def test_only_files_are_read():
    result = CliRunner().invoke(app, ["judge", "--table", "/dev/zero"])
    assert isinstance(result.exception, DataError)


def test_the_command_prints_a_line_a_row_and_json(file):
    path = file(TABLE)
    result = CliRunner().invoke(app, ["judge", "--table", str(path)])
    assert result.exit_code == 0, result.output
    first, _, heading, *lines = result.output.splitlines()
    assert first == (
        "6 numbers, judged together: 1 reproduced, 2 drifted, 2 inconclusive, 1 untested"
    )
    assert heading.split()[:4] == ["name", "metric", "ours", "published"]
    assert lines[3].split()[-3:] == ["drifted", "high", "no"]
    assert "untested  nothing is known" in result.output
    content = CliRunner().invoke(app, ["judge", "--table", str(path), "--json"])
    assert json.loads(content.output) == judge_table(read_cases(path, DEFAULTS, margin_of))
    assert json.loads(content.output)[5]["verdict"] == UNTESTED


def test_a_table_has_its_own_numbers(file):
    words = ["judge", "--table", str(file(TABLE)), "--ours", "62.4"]
    assert "--table has --ours" in str(CliRunner().invoke(app, words).exception)


@pytest.mark.parametrize("heading", ["ours,published,Published", "ours,Ours,published"])
def test_a_column_that_is_there_twice_is_an_error_in_any_case(tmp_path, heading):
    path = tmp_path / "numbers.csv"
    path.write_text(f"{heading}\n62.4,65.9,60.1\n")
    with pytest.raises(ConfigError, match="each column once"):
        read_cases(path, {"metric": "recall_at_1"}, margin_of)


def test_only_a_table_of_text_is_judged(tmp_path):
    path = tmp_path / "numbers.npz"
    np.savez(path, ours=[62.4, 25.0], published=[65.0])
    with pytest.raises(ConfigError, match=r"a \.csv"):
        read_cases(path, {"metric": "recall_at_1"}, margin_of)
