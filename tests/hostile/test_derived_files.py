"""Damaged files that one step derived and another reads: one message, and no traceback."""

from __future__ import annotations

import json
import math
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml

from benchmark.__main__ import app
from benchmark.core.csv_file import read_csv
from benchmark.core.errors import BenchmarkError
from benchmark.core.record_files import read_record
from benchmark.papers.printed.cells import PrintedCell
from benchmark.report.records import read_artefacts
from benchmark.study.documents import read_document
from hostile.limits import limited
from hostile.run_targets import finish
from hostile.study_targets import small_study

STEPS = ("collect", "stats", "verdicts")


def call(verb: str) -> None:
    app([verb, "x.yaml"], standalone_mode=False)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Return a folder with a study of two runs, collected and judged."""
    folder = tmp_path_factory.mktemp("derived")
    finish(folder / "results")
    study = small_study(seeds=[0], tables=["comparison", "best_epoch", "cost"])
    (folder / "x.yaml").write_text(yaml.safe_dump(study))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for verb in STEPS:
            call(verb)
    return folder


@pytest.fixture
def place(good, tmp_path, monkeypatch) -> Path:
    """Return the results of the study in a copy of the folder, which is the working directory."""
    shutil.copytree(good, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return Path("results", "x")


@pytest.mark.parametrize("verb", ["tables", "report"])
@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("stats/best_epoch.csv", "recall_at_1", "recall"),
        ("stats/costs.csv", "smooth_ap", ""),
        ("stats/summary.csv", "mean", "means"),
        ("stats/summary.csv", ",", ";"),
        ("stats/summary.csv", "0.5", "half"),
        ("provenance.json", "fingerprints", "prints"),
        ("provenance.json", "{", "["),
        ("runs.csv", "seed", "sprout"),
        ("verdicts.csv", "verdict", "word"),
    ],
)
def test_a_damaged_table_is_refused_or_shown_as_it_is(place, verb, file, old, new):
    path = place / file
    path.write_text(path.read_text().replace(old, new))
    try:
        call(verb)
    except BenchmarkError as error:
        assert "again" in str(error) and "results/x" in str(error)


WRONG = {
    "a row twice": lambda table: pd.concat([table, table.iloc[:1]]),
    "a score of 1.7": lambda table: table.assign(mean="1.7"),
    "a score of inf": lambda table: table.assign(mean="inf"),
    "a score of text": lambda table: table.assign(mean="half"),
    "a column twice": lambda table: pd.concat([table, table["mean"]], axis=1),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=list(WRONG))
def test_a_wrong_number_is_not_taken_for_a_right_one(place, change):
    path = place / "stats" / "summary.csv"
    change(pd.read_csv(path, dtype=str, keep_default_na=False)).to_csv(path, index=False)
    with pytest.raises(BenchmarkError, match=r"summary\.csv cannot be read"):
        call("tables")


@pytest.mark.parametrize("count", ["-5", "9" * 400])
def test_a_number_of_runs_that_cannot_be_is_refused(place, count):
    path = place / "provenance.json"
    path.write_text(path.read_text().replace('"ok": ', f'"ok": {count}'))
    with pytest.raises(BenchmarkError, match=r"provenance\.json cannot be read .*runs\.ok"):
        call("tables")


def test_a_p_value_above_1_is_refused(place):
    path = place / "stats" / "paired.csv"
    pd.read_csv(path).assign(p_holm=2.0).to_csv(path, index=False)
    with pytest.raises(BenchmarkError, match=r"paired\.csv .*p_holm is not in \[0, 1\]"):
        call("tables")


def test_a_printed_mean_that_is_no_number_is_refused(tmp_path):
    cell = {"source": "toy", "table": "1", "line": 2}
    for changed in ({"mean": math.nan}, {"other": math.inf}, {"n": -1}):
        (tmp_path / "tables.json").write_text(json.dumps([cell | changed]))
        with pytest.raises(BenchmarkError, match=next(iter(changed))):
            read_record(tuple[PrintedCell, ...], tmp_path / "tables.json", "what papers print")


READERS = {
    "contents.json": lambda path: read_artefacts(path.parent, "tables"),
    "tables.json": lambda path: read_record(
        tuple[PrintedCell, ...], path, "what papers print", "papers STUDY"
    ),
    "runs.csv": lambda path: read_csv(path, [], {}),
    "x.yaml": read_document,
}


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(name, tmp_path):
    os.mkfifo(tmp_path / name)
    with pytest.raises((BenchmarkError, OSError), match="not a regular file"), limited():
        READERS[name](tmp_path / name)


def test_frozen_runs_that_are_no_text_are_refused_where_they_are_judged(place):
    Path("frozen.csv").write_bytes(bytes(range(256)))
    study = small_study(seeds=[0], references={"published": [], "frozen": "frozen.csv"})
    Path("x.yaml").write_text(yaml.safe_dump(study))
    call("register-analysis")
    with pytest.raises(BenchmarkError, match=r"frozen\.csv"):
        call("verdicts")


@pytest.mark.parametrize("file", ["claims.csv", "stats/summary.csv", "runs.csv", "verdicts.csv"])
def test_a_table_of_gigabytes_without_content_is_refused_before_it_is_read(place, file):
    (place / file).write_bytes(b"")
    os.truncate(place / file, 8 << 30)
    with pytest.raises(BenchmarkError, match=r"more than 500,000,000 bytes"), limited():
        call("tables")
