"""Run folders become two tables; whatever state a folder is in, its run has a row and a reason."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pandas as pd
import pytest

from benchmark.core.records import STATUSES
from benchmark.core.results import (
    COSTS,
    BatchStream,
    DatasetContent,
    MemoryUse,
    Metrics,
    Numerics,
    Weights,
)
from benchmark.runs.collect import collect
from benchmark.runs.run_table import RunTable


@pytest.fixture
def table_of(study, results):
    """Returns a function that collects and reads the tables."""

    def table() -> RunTable:
        collect(study, results)
        return RunTable.read(results / "four")

    return table


@pytest.fixture
def first(runs):
    """Returns the first run; its identity comes from the recipe's label."""
    return next(iter(runs.values()))


def row_of(table: RunTable, run) -> pd.Series:
    (row,) = table.runs[table.runs["run_id"] == run.spec.run_id].to_dict("records")
    return row


def scores_of(table: RunTable, run) -> pd.DataFrame:
    return table.scores[table.scores["run_id"] == run.spec.run_id]


def test_a_finished_run_gives_its_last_best_and_curve_scores(first, finish, table_of):
    finish(first)
    rows = scores_of(table_of(), first)

    def values(selection, split, metric):
        chosen = rows.query("selection == @selection and split == @split and metric == @metric")
        return list(chosen[["epoch", "value"]].itertuples(index=False, name=None))

    assert values("last", "test", "recall_at_1") == [(2, 0.5)]
    assert values("last", "test", "map") == [(2, 0.25)]
    assert values("best", "test", "recall_at_1") == [(1, 0.6)]
    assert values("curve", "test", "recall_at_1") == [(1, 0.6), (2, 0.5)]
    assert values("curve", "train", "loss") == [(1, 0.9), (2, 0.8)]


def test_every_cost_of_a_run_has_a_column_the_memory_of_the_gpu_too(first, finish, table_of):
    finish(first, provenance={"memory": MemoryUse(peak_rss_mb=700.0, peak_gpu_mb=1234.5)})
    row = row_of(table_of(), first)
    assert (row["total_seconds"], row["peak_rss_mb"], row["peak_gpu_mb"]) == (12.0, 700.0, 1234.5)
    assert set(COSTS) <= set(row) and "peak_gpu_mb" in COSTS


def test_identity_and_settings_come_from_the_specification(first, finish, table_of):
    finish(first)
    row = row_of(table_of(), first)
    assert (row["dataset"], row["loss"], row["base_loss"]) == (
        "glyphs_tiny",
        "smooth_ap",
        "smooth_ap",
    )
    assert (row["batch_size"], row["seed"], row["setting"]) == (32, 0, first.spec.setting.label)
    assert (row["backbone"], row["options"]) == (first.spec.setting.backbone, ())
    assert (row["spec_digest"], row["code_version"], row["platform"]) == (
        first.digest,
        "0.1.0+aaa",
        "linux-cpu",
    )
    recipe = first.spec.recipe
    assert row["loss.tau"] == first.spec.loss.params["tau"] == 0.01
    assert row["recipe.model.embedding_dim"] == recipe.model.embedding_dim
    assert row["recipe.sampler.samples_per_class"] == recipe.sampler.params["samples_per_class"]
    assert row["recipe.evaluation.recall_at"] == tuple(recipe.evaluation.recall_at)
    assert row["recipe.training.deterministic"] is True and row["recipe.memory.size"] is None


def test_runs_without_a_folder_are_missing(runs, table_of):
    table = table_of()
    assert list(table.runs["run_id"]) == list(runs)
    assert set(table.runs["status"]) == {"missing"} and table.scores.empty


def test_a_diverged_run_keeps_its_curve_and_reason(first, finish, table_of):
    finish(first, status="diverged", reason="loss became nan", metrics=Metrics({}, {}))
    table = table_of()
    row = row_of(table, first)
    assert (row["status"], row["reason"]) == ("diverged", "loss became nan")
    assert set(scores_of(table, first)["selection"]) == {"curve"}


def test_a_result_of_another_specification_is_stale_and_gives_no_numbers(first, finish, table_of):
    finish(first, spec_digest="0123456789abcdef")
    table = table_of()
    row = row_of(table, first)
    assert row["status"] == "stale" and scores_of(table, first).empty
    assert "0123456789abcdef" in row["reason"] and first.digest in row["reason"]
    assert row["code_version"] == "0.1.0+aaa"


@pytest.mark.parametrize("name", ["result.json", "provenance.json"])
@pytest.mark.parametrize("text", ["", '{"schema": 1, "run', "[]", "\x00\x00"])
def test_a_torn_record_is_a_failure_of_its_run_alone(runs, finish, table_of, name, text):
    first, second, *_ = runs.values()
    (finish(first) / name).write_text(text)
    finish(second)
    table = table_of()
    row = row_of(table, first)
    assert row["status"] == "failed" and "delete it" in row["reason"]
    assert name in row["reason"] and scores_of(table, first).empty
    assert row_of(table, second)["status"] == "ok"


def test_a_result_of_another_schema_is_a_failure_that_names_both(first, finish, table_of):
    path = finish(first) / "result.json"
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 99'))
    row = row_of(table_of(), first)
    assert row["status"] == "failed" and "schema Input should be 1" in row["reason"]


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
    table = table_of()
    row = row_of(table, first)
    assert row["status"] == "ok" and pd.isna(row["total_seconds"])
    assert not scores_of(table, first).empty


def test_absolute_paths_stay_out_of_the_table(study, results):
    choice = replace(study.blocks[0].datasets[0], params={"root": "/home/somebody/glyphs"})
    private = replace(study, blocks=(replace(study.blocks[0], datasets=(choice,)),))
    collect(private, results)
    text = (results / "four" / "runs.csv").read_text()
    assert "somebody" not in text and "glyphs" in text


def test_counts_per_status_cover_every_status(study, results, runs, finish):
    first, second, *_ = runs.values()
    finish(first)
    finish(second, spec_digest="0" * 16)
    counts = collect(study, results)
    assert counts == {**dict.fromkeys(STATUSES, 0), "ok": 1, "stale": 1, "missing": 2}


def test_collecting_twice_gives_the_same_bytes(study, results, runs, finish):
    for run in runs.values():
        finish(run)
    collect(study, results)
    files = [results / "four" / name for name in ("runs.csv", "scores.csv", "provenance.json")]
    before = [path.read_bytes() for path in files]
    collect(study, results)
    assert [path.read_bytes() for path in files] == before


def test_provenance_flags_mixed_code_and_two_contents_of_one_dataset(study, results, runs, finish):
    one, two, three, _ = runs.values()
    finish(one)
    finish(two, code_version="0.1.0+bbb")
    finish(
        three,
        dataset=DatasetContent("glyphs_tiny", "beef", {}),
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
    small, large = (Weights("r", "from scratch", "c" * 16, size) for size in (10, 20))
    for run, weights in zip(runs.values(), (small, large, large, large), strict=True):
        finish(run, provenance={"weights": weights})
    collect(study, results)
    setting = next(iter(runs.values())).spec.setting.label
    assert json.loads((results / "four" / "provenance.json").read_text())["weights"] == [
        {**asdict(large), "settings": [setting], "runs": 3},
        {**asdict(small), "settings": [setting], "runs": 1},
    ]


def test_a_stale_run_does_not_mix_into_the_provenance(study, results, first, finish):
    finish(first, spec_digest="0" * 16, code_version="0.0.1+old")
    collect(study, results)
    assert json.loads((results / "four" / "provenance.json").read_text())["code_versions"] == {}


SAME = BatchStream(50, "5a3e")
OTHER = BatchStream(50, "07e4")


@pytest.fixture
def collected(study, results):
    """Returns a function that collects the study and gives its provenance."""

    def record() -> dict[str, Any]:
        collect(study, results)
        return json.loads((results / "four" / "provenance.json").read_text())

    return record


@pytest.fixture
def warnings_of(collected):
    """Returns a function that collects the study and gives the warnings of its provenance."""
    return lambda: collected()["warnings"]


def test_losses_that_saw_the_same_batches_need_no_warning(runs, finish, warnings_of):
    for run in runs.values():
        finish(run, batch_stream=BatchStream(50, f"seed {run.spec.seed}"))
    assert not warnings_of()


def test_a_pair_that_saw_different_batches_is_named(runs, finish, warnings_of):
    for run in runs.values():
        alone = run.spec.seed == 1 and run.spec.loss.name == "roadmap"
        finish(run, batch_stream=OTHER if alone else SAME)
    (warning,) = warnings_of()
    assert (
        "in 1 of 2 groups" in warning
        and "batch size 32, seed 1" in warning
        and "not paired" in warning
    )


def test_a_diverged_run_that_saw_fewer_batches_is_no_mismatch(runs, finish, warnings_of):
    first, *others = runs.values()
    finish(
        first,
        status="diverged",
        reason="loss became nan",
        batch_stream=BatchStream(20, "cafe"),
    )
    for run in others:
        finish(run, batch_stream=SAME)
    assert not warnings_of()


def test_a_pair_that_started_from_different_weights_is_named(runs, finish, warnings_of):
    for run in runs.values():
        alone = run.spec.seed == 1 and run.spec.loss.name == "roadmap"
        digest = "07e4" if alone else f"seed {run.spec.seed}"
        finish(run, provenance={"weights": Weights("test_resnet", "from scratch", digest, 9)})
    (warning,) = warnings_of()
    assert (
        "in 1 of 2 groups" in warning
        and "different weights" in warning
        and "batch size 32, seed 1" in warning
    )


def test_networks_that_are_meant_to_differ_are_no_mismatch(runs, finish, warnings_of):
    for run in runs.values():
        kind = run.spec.loss.name
        weights = Weights(kind, "from scratch", f"that of {kind}", 9)
        finish(run, provenance={"weights": weights})
    assert not warnings_of()


def test_a_run_continued_on_another_kind_of_machine_is_named(runs, finish, warnings_of):
    first, second, *_ = runs.values()
    finish(first, provenance={"machines": ["some processor", "another processor"]})
    finish(second, provenance={"machines": ["some processor"]})
    (warning,) = warnings_of()
    assert "another kind of machine: 1 " in warning and first.spec.run_id in warning


def test_a_run_continued_with_other_packages_is_named(runs, finish, warnings_of):
    first, second, *_ = runs.values()
    finish(first, provenance={"package_digests": ["3f", "a7"]})
    finish(second, provenance={"package_digests": ["3f"]})
    (warning,) = warnings_of()
    assert "other versions of packages: 1 " in warning and first.spec.run_id in warning


def test_runs_with_other_vector_instructions_are_counted_apart(runs, finish, collected):
    for run, used in zip(runs.values(), ("AVX512", "AVX512", "AVX2", None), strict=True):
        finish(run, provenance={"numerics": Numerics("cpu", "float32", 1, used, True)})
    found = {machine.get("instructions"): machine["runs"] for machine in collected()["hardware"]}
    assert found == {"AVX512": 2, "AVX2": 1, None: 1}
