"""Run folders become one long table; whatever state a folder is in, its run has a row and a reason."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pandas as pd
import pytest

from benchmark.core.errors import RunError
from benchmark.core.records import LONG_COLUMNS, STATUSES
from benchmark.runs.collect import collect


@pytest.fixture
def table_of(study, results):
    """Returns a function that collects and reads the table."""

    def table() -> pd.DataFrame:
        collect(study, results)
        return pd.read_csv(results / "four" / "runs.csv", keep_default_na=False)

    return table


@pytest.fixture
def first(runs):
    """Returns the first run; its identity comes from the recipe's label."""
    return next(iter(runs.values()))


def row_of(table: pd.DataFrame, run) -> pd.Series:
    rows = table[table["run_id"] == run.spec.run_id]
    assert len(rows) == 1
    return rows.iloc[0]


def test_a_finished_run_gives_its_last_best_curve_and_cost_rows(first, finish, table_of):
    finish(first)
    table = table_of()
    assert tuple(table.columns) == LONG_COLUMNS
    rows = table[table["run_id"] == first.spec.run_id]
    assert set(rows["status"]) == {"ok"}

    def values(selection, split, metric):
        chosen = rows[
            (rows["selection"] == selection) & (rows["split"] == split) & (rows["metric"] == metric)
        ]
        return [
            (str(epoch), float(value))
            for epoch, value in zip(chosen["epoch"], chosen["value"], strict=True)
        ]

    assert values("last", "test", "recall_at_1") == [("2", 0.5)]
    assert values("last", "test", "map") == [("2", 0.25)]
    assert values("best", "test", "recall_at_1") == [("1", 0.6)]
    assert values("curve", "test", "recall_at_1") == [("1", 0.6), ("2", 0.5)]
    assert values("curve", "train", "loss") == [("1", 0.9), ("2", 0.8)]
    assert values("cost", "train", "total_seconds") == [("", 12.0)]
    assert values("cost", "train", "peak_rss_mb") == [("", 700.0)]
    assert not values("cost", "train", "loss_ms"), "a cost that was not recorded has no row"


def test_identity_columns_come_from_the_specification(first, finish, table_of):
    finish(first)
    row = table_of().iloc[0]
    assert (row["dataset"], row["loss"], row["base_loss"]) == (
        "glyphs_tiny",
        "smooth_ap",
        "smooth_ap",
    )
    assert (row["batch_size"], row["seed"], row["setting"]) == (32, 0, first.spec.setting)
    assert (row["spec_digest"], row["code_version"], row["platform"]) == (
        first.digest,
        "0.1.0+aaa",
        "linux-cpu",
    )


def test_runs_without_a_folder_are_missing(runs, table_of):
    table = table_of()
    assert list(table["run_id"]) == list(runs)
    assert set(table["status"]) == {"missing"} and set(table["metric"]) == {""}


def test_a_diverged_run_keeps_its_curve_and_reason(first, finish, table_of):
    finish(
        first,
        status="diverged",
        reason="loss became nan at epoch 2",
        metrics={"last": {}, "best": {}},
    )
    table = table_of()
    rows = table[table["run_id"] == first.spec.run_id]
    assert set(rows["status"]) == {"diverged"} and set(rows["reason"]) == {
        "loss became nan at epoch 2"
    }
    assert list(rows[rows["selection"] == "last"]["metric"]) == [""]
    assert "loss" in set(rows[rows["selection"] == "curve"]["metric"])


def test_a_result_of_another_specification_is_stale_and_gives_no_numbers(first, finish, table_of):
    finish(first, spec_digest="0123456789abcdef")
    row = row_of(table_of(), first)
    assert row["status"] == "stale" and row["value"] == ""
    assert "0123456789abcdef" in row["reason"] and first.digest in row["reason"]
    assert row["code_version"] == "0.1.0+aaa"


@pytest.mark.parametrize("text", ["", '{"schema": 1, "run', "[]", "\x00\x00"])
def test_a_torn_result_is_a_failure_that_says_what_to_do(first, finish, table_of, text):
    (finish(first) / "result.json").write_text(text)
    row = row_of(table_of(), first)
    assert row["status"] == "failed" and "delete it and run the study again" in row["reason"]


def test_a_result_of_another_schema_is_a_failure_that_names_both(first, finish, table_of):
    finish(first, schema=99)
    row = row_of(table_of(), first)
    assert row["status"] == "failed" and "schema 99, this version reads 1" in row["reason"]


def test_a_result_without_metrics_is_a_failure(first, finish, table_of):
    finish(first, metrics=None)
    assert row_of(table_of(), first)["status"] == "failed"


@pytest.mark.parametrize(
    ("log", "status", "reason"),
    [
        (
            "start\nTraceback (most recent call last):\n  File x\nValueError: too bad\n",
            "failed",
            "ValueError: too bad",
        ),
        (
            "error: data/a.png: truncated\n  read it again\n",
            "failed",
            "data/a.png: truncated read it again",
        ),
        ("epoch 1\nKilled\n", "failed", "Killed"),
        ("epoch 1 loss 0.9\n", "missing", "still running"),
        ("", "missing", "still running"),
    ],
)
def test_a_log_without_a_result_says_what_happened(first, finish, table_of, log, status, reason):
    folder = finish(first)
    (folder / "result.json").unlink()
    (folder / "train.log").write_text(log)
    row = row_of(table_of(), first)
    assert row["status"] == status and reason in row["reason"]


def test_a_run_without_provenance_keeps_its_scores(first, finish, table_of):
    (finish(first) / "provenance.json").unlink()
    rows = table_of()
    rows = rows[rows["run_id"] == first.spec.run_id]
    assert set(rows["status"]) == {"ok"} and "cost" not in set(rows["selection"])


def test_counts_per_status_cover_every_status(study, results, runs, finish):
    first, second, *_ = runs.values()
    finish(first)
    finish(second, spec_digest="old")
    counts = collect(study, results)
    assert counts == {**dict.fromkeys(STATUSES, 0), "ok": 1, "stale": 1, "missing": 2}


def test_collecting_twice_gives_the_same_bytes(study, results, runs, finish):
    for run in runs.values():
        finish(run)
    collect(study, results)
    files = [results / "four" / name for name in ("runs.csv", "provenance.json")]
    before = [path.read_bytes() for path in files]
    collect(study, results)
    assert [path.read_bytes() for path in files] == before


def test_provenance_flags_mixed_code_and_two_contents_of_one_dataset(study, results, runs, finish):
    one, two, three, _ = runs.values()
    finish(one)
    finish(two, code_version="0.1.0+bbb")
    finish(
        three,
        dataset={"name": "glyphs_tiny", "fingerprint": "beef", "counts": {}},
        provenance={"packages": {"torch": "2.14.0"}},
    )
    collect(study, results)
    record = json.loads((results / "four" / "provenance.json").read_text())
    assert record["code_versions"] == {"0.1.0+aaa": 2, "0.1.0+bbb": 1}
    assert record["datasets"]["glyphs_tiny"]["fingerprints"] == {"f00d": 2, "beef": 1}
    assert (
        len(record["errors"]) == 1 and "'glyphs_tiny' had different contents" in record["errors"][0]
    )
    assert any("code versions" in line for line in record["warnings"])
    assert any("versions of torch" in line for line in record["warnings"])
    assert record["runs"]["missing"] == 1 and record["total_seconds"] == 36.0


def test_provenance_of_equal_runs_has_no_warning(study, results, runs, finish):
    for run in runs.values():
        finish(run)
    collect(study, results)
    record = json.loads((results / "four" / "provenance.json").read_text())
    assert record["errors"] == [] and record["warnings"] == []


def test_provenance_says_which_settings_began_with_which_weights(study, results, runs, finish):
    small, large = (
        {"backbone": "r", "weights": "from scratch", "parameters": size} for size in (10, 20)
    )
    for run, weights in zip(runs.values(), (small, large, large, large), strict=True):
        finish(run, provenance={"weights": weights})
    collect(study, results)
    setting = next(iter(runs.values())).spec.setting
    assert json.loads((results / "four" / "provenance.json").read_text())["weights"] == [
        {**large, "settings": [setting], "runs": 3},
        {**small, "settings": [setting], "runs": 1},
    ]


def test_a_stale_run_does_not_mix_into_the_provenance(study, results, first, finish):
    finish(first, spec_digest="old", code_version="0.0.1+old")
    collect(study, results)
    assert json.loads((results / "four" / "provenance.json").read_text())["code_versions"] == {}


def test_a_folder_that_cannot_be_written_is_one_clear_error(study, results):
    results.mkdir()
    (results / "four").write_text("a file where the folder should be")
    with pytest.raises(RunError, match="cannot write"):
        collect(study, results)


def test_many_runs_are_collected_quickly(study, results, finish):
    from benchmark.study.grid import expand

    many = replace(study, blocks=(replace(study.blocks[0], seeds=tuple(range(500))),))
    for run in expand(many).values():
        finish(run)
    started = time.process_time()
    collect(many, results)
    assert time.process_time() - started < 3, "1,000 runs; 10,000 should take seconds, not minutes"
