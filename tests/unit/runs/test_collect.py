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
from benchmark.datasets import DATASETS
from benchmark.runs.collecting import collect
from benchmark.runs.folders import settle
from benchmark.runs.run_table import RunTable


@pytest.fixture
def collected(study, results):
    """Return what collects and gives a run's row and its scores."""

    def of(run) -> tuple[pd.Series, pd.DataFrame]:
        collect(study, results)
        table = RunTable.read(results / "four")
        (row,) = table.runs[table.runs["run_id"] == run.spec.run_id].to_dict("records")
        return row, table.scores[table.scores["run_id"] == run.spec.run_id]

    return of


@pytest.fixture
def provenance(study, results):
    """Return what collects the study and gives its provenance."""

    def record() -> dict[str, Any]:
        collect(study, results)
        return json.loads((results / "four" / "provenance.json").read_text())

    return record


@pytest.fixture
def first(runs):
    return next(iter(runs.values()))


def test_a_finished_run_gives_its_last_best_and_curve_scores(first, finish, collected):
    finish(first)
    _, rows = collected(first)

    def values(selection, split, metric):
        chosen = rows.query("selection == @selection and split == @split and metric == @metric")
        return list(chosen[["epoch", "value"]].itertuples(index=False, name=None))

    assert values("last", "test", "recall_at_1") == [(2, 0.5)]
    assert values("last", "test", "map") == [(2, 0.25)]
    assert values("best", "test", "recall_at_1") == [(1, 0.6)]
    assert values("curve", "test", "recall_at_1") == [(1, 0.6), (2, 0.5)]
    assert values("curve", "train", "loss") == [(1, 0.9), (2, 0.8)]


def test_identity_settings_and_costs_come_from_the_run(first, finish, collected):
    finish(first, provenance={"memory": MemoryUse(peak_rss_mb=700.0, peak_gpu_mb=1234.5)})
    row, _ = collected(first)
    spec = first.spec
    recipe = first.spec.recipe
    wanted = {
        **{"dataset": "glyphs_tiny", "loss": "smooth_ap", "base_loss": "smooth_ap"},
        **{"batch_size": 32, "seed": 0, "setting": spec.setting.label, "options": ()},
        **{"backbone": spec.setting.backbone, "spec_digest": first.digest},
        **{"code_version": "0.1.0+aaa", "platform": "linux-cpu", "loss.tau": 0.01},
        "recipe.model.embedding_dim": recipe.model.embedding_dim,
        "recipe.sampler.samples_per_class": recipe.sampler.params["samples_per_class"],
        "recipe.evaluation.recall_at": tuple(recipe.evaluation.recall_at),
        **{"recipe.training.deterministic": True, "recipe.memory.size": None},
        **{"total_seconds": 12.0, "peak_rss_mb": 700.0, "peak_gpu_mb": 1234.5},
    }
    assert {name: row[name] for name in wanted} == wanted
    assert set(COSTS) <= set(row)


def test_runs_without_a_folder_are_missing(study, results, runs):
    assert collect(study, results) == {**dict.fromkeys(STATUSES, 0), "missing": 4}
    table = RunTable.read(results / "four")
    assert list(table.runs["run_id"]) == list(runs)
    assert table.scores.empty


def test_a_diverged_run_keeps_its_curve_and_reason(first, finish, collected):
    finish(first, status="diverged", reason="loss became nan", metrics=Metrics({}, {}))
    row, scores = collected(first)
    assert (row["status"], row["reason"]) == ("diverged", "loss became nan")
    assert set(scores["selection"]) == {"curve"}


def test_a_result_of_another_specification_is_stale_and_gives_no_numbers(
    first, finish, collected, provenance
):
    finish(first, spec_digest="0123456789abcdef")
    row, scores = collected(first)
    assert row["status"] == "stale"
    assert scores.empty
    assert row["code_version"] == "0.1.0+aaa"
    assert "0123456789abcdef" in row["reason"]
    assert first.digest in row["reason"]
    assert provenance()["code_versions"] == {}
    assert provenance()["runs"]["stale"] == 1


@pytest.mark.parametrize("text", ["", '{"schema": 1, "run', "[]", "\x00\x00"])
def test_a_torn_record_is_a_failure_of_its_run_alone(runs, finish, collected, text):
    first, second, *_ = runs.values()
    (finish(first) / "result.json").write_text(text)
    finish(second)
    row, scores = collected(first)
    assert row["status"] == "failed"
    assert "result.json" in row["reason"]
    assert scores.empty
    assert collected(second)[0]["status"] == "ok"


def test_a_result_of_another_schema_is_a_failure_that_names_both(first, finish, collected):
    path = finish(first) / "result.json"
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 99'))
    row, _ = collected(first)
    assert row["status"] == "failed"
    assert "(schema Input should be 1)" in row["reason"]


RAISED = "start\nTraceback (most recent call last):\n  File x\nValueError: too bad\n"
SAID = "error: data/a.png: truncated\n  read it again\n"


@pytest.mark.parametrize(
    ("log", "status", "reason"),
    [
        (RAISED, "failed", "ValueError: too bad"),
        (SAID, "failed", "data/a.png: truncated read it again"),
        ("epoch 1\nKilled\n", "failed", "Killed"),
        ("epoch 1 loss 0.9\n", "missing", "still running"),
        ("", "missing", "still running"),
    ],
)
def test_a_log_without_a_result_says_what_happened(first, finish, collected, log, status, reason):
    folder = finish(first)
    (folder / "result.json").unlink()
    (folder / "train.log").write_text(log)
    row, _ = collected(first)
    assert row["status"] == status
    assert reason in row["reason"]


@pytest.mark.parametrize("text", [None, "", '{"schema": 1, "run'])
def test_a_run_without_provenance_keeps_its_scores(first, finish, collected, results, text):
    path = finish(first) / "provenance.json"
    path.unlink()
    if text is not None:
        path.write_text(text)
    assert settle(first, results, dry_run=True) == "finished"
    row, scores = collected(first)
    assert row["status"] == "ok"
    assert pd.isna(row["total_seconds"])
    assert not scores.empty


def test_absolute_paths_stay_out_of_the_table(study, results):
    choice = replace(study.blocks[0].datasets[0], params={"root": "/home/somebody/glyphs"})
    private = replace(study, blocks=(replace(study.blocks[0], datasets=(choice,)),))
    collect(private, results)
    text = (results / "four" / "runs.csv").read_text()
    assert "somebody" not in text
    assert "glyphs" in text


def test_collecting_twice_gives_the_same_bytes(study, results, runs, finish):
    for run in runs.values():
        finish(run)
    files = [results / "four" / name for name in ("runs.csv", "scores.csv", "provenance.json")]
    before, after = (
        [path.read_bytes() for path in files] for _ in range(2) if collect(study, results)
    )
    assert before == after


def test_provenance_flags_mixed_code_and_two_contents_of_one_dataset(runs, finish, provenance):
    one, two, three, _ = runs.values()
    finish(one)
    finish(two, code_version="0.1.0+bbb")
    content = DatasetContent("glyphs_tiny", "beef", {})
    packages = {"torch": "2.14.0"}
    finish(three, dataset=content, provenance={"packages": packages})
    record = provenance()
    assert record["code_versions"] == {"0.1.0+aaa": 2, "0.1.0+bbb": 1}
    assert record["datasets"]["glyphs_tiny"]["fingerprints"] == {"f00d": 2, "beef": 1}
    (error,) = record["errors"]
    assert "'glyphs_tiny'" in error
    for words in ("0.1.0+bbb", "torch"):
        assert any(words in line for line in record["warnings"])
    assert record["runs"]["missing"] == 1
    assert record["total_seconds"] == 36.0


def test_provenance_says_which_of_two_known_counts_the_data_have(
    first, finish, provenance, monkeypatch
):
    published = {"train": {"images": 7}}
    files = {"train": {"images": 9}}
    monkeypatch.setattr(DATASETS["glyphs_tiny"].target, "expected", published)
    monkeypatch.setattr(DATASETS["glyphs_tiny"].target, "distributed", files)
    for number, other in ((9, "7"), (7, "9")):
        counts = {"train": {"images": number, "classes": 2}}
        finish(first, dataset=DatasetContent("glyphs_tiny", "f00d", counts))
        assert other in provenance()["datasets"]["glyphs_tiny"]["which_counts"]
    finish(first, dataset=DatasetContent("glyphs_tiny", "f00d", {"train": {"images": 8}}))
    assert "which_counts" not in provenance()["datasets"]["glyphs_tiny"]


def test_runs_with_a_plugin_beside_others_are_no_mixed_versions(runs, finish, provenance):
    one, two, three, _ = runs.values()
    finish(one)
    finish(two, code_version="0.1.0+aaa+mine-1")
    assert len(provenance()["code_versions"]) == 2
    assert provenance()["warnings"] == []
    finish(three, code_version="0.1.0+aaa+mine-2")
    assert "0.1.0+aaa" in provenance()["warnings"][0]


def test_provenance_says_which_settings_began_with_which_weights(runs, finish, provenance):
    small, large = (Weights("r", "from scratch", "c" * 16, size) for size in (10, 20))
    for run, weights in zip(runs.values(), (small, large, large, large), strict=True):
        finish(run, provenance={"weights": weights})
    settings = [next(iter(runs.values())).spec.setting.label]
    assert provenance()["weights"] == [
        {**asdict(each), "settings": settings, "runs": n} for each, n in ((large, 3), (small, 1))
    ]


def test_runs_with_other_kernels_are_counted_apart_and_warned_of(runs, finish, provenance):
    portable = "portable AVX2"
    native = "native AVX512"
    for run, used in zip(runs.values(), (portable, native, portable, portable), strict=True):
        finish(run, provenance={"numerics": Numerics("cpu", "float32", 1, used, True)})
    record = provenance()
    assert {each["kernels"]: each["runs"] for each in record["hardware"]} == {
        portable: 3,
        native: 1,
    }
    (warning,) = record["warnings"]
    assert portable in warning


def batches(digest: str, number: int = 50) -> dict[str, Any]:
    return {"batch_stream": BatchStream(number, digest)}


def weights(digest: str, kind: str = "resnet") -> dict[str, Any]:
    return {"provenance": {"weights": Weights(kind, "from scratch", digest, 9)}}


def is_odd(run) -> bool:
    return run.spec.seed == 1 and run.spec.loss.name == "roadmap"


LOST = {"status": "diverged", "reason": "loss became nan", **batches("cafe", 20)}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param(lambda run: {}, (), id="equal runs"),
        pytest.param(lambda run: batches(f"seed {run.spec.seed}"), (), id="batches by seed"),
        pytest.param(
            lambda run: batches("other" if is_odd(run) else "same"),
            ("1 of 2", "batches", "batch size 32, seed 1"),
            id="other batches",
        ),
        pytest.param(lambda run: LOST if is_odd(run) else batches("same"), (), id="diverged"),
        pytest.param(
            lambda run: weights("other" if is_odd(run) else f"seed {run.spec.seed}"),
            ("1 of 2", "weights", "batch size 32, seed 1"),
            id="other weights",
        ),
        pytest.param(
            lambda run: weights(f"that of {run.spec.loss.name}", run.spec.loss.name),
            (),
            id="networks that are meant to differ",
        ),
        pytest.param(
            lambda run: {"provenance": {"machines": ["one", "another"][: 1 + is_odd(run)]}},
            ("machine: 1 ", "/roadmap/bs32/seed1"),
            id="another machine",
        ),
        pytest.param(
            lambda run: {"provenance": {"package_digests": ["3f", "a7"][: 1 + is_odd(run)]}},
            ("packages: 1 ", "/roadmap/bs32/seed1"),
            id="other packages",
        ),
    ],
)
def test_runs_that_cannot_be_compared_are_named(changes, words, runs, finish, provenance):
    for run in runs.values():
        finish(run, **changes(run))
    record = provenance()
    assert record["errors"] == []
    assert len(record["warnings"]) == bool(words)
    assert all(word in record["warnings"][0] for word in words)
