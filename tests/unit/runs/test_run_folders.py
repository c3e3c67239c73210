"""The plan says what is left; specifications are written once, never bury a finished result, and
are put away where they are not the study's, or their result is not."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace

import pytest
from huggingface_hub import constants
from made_up_records import TIMING
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.records import RunSpec
from benchmark.core.results import MemoryUse
from benchmark.core.words import rough_duration
from benchmark.datasets import loader_of
from benchmark.models import backbone
from benchmark.report.summary import closing_words
from benchmark.runs.folders import (
    put_away,
    settle,
    states_of,
    status_in,
    write_spec,
    write_specs,
)
from benchmark.runs.plan import plan_text, seconds_left, sources_text
from benchmark.study import Resources, load_study

OTHER = "0123456789abcdef"  # digest of another specification


def test_plan_counts_states_and_estimates_from_runs_of_the_same_shape(study, results, runs, finish):
    assert plan_text(study, results).splitlines()[-3].endswith("?")
    one, two, three, four = runs.values()
    finish(one)
    finish(two, provenance={"timing": replace(TIMING, total_seconds=24.0)})
    finish(three, spec_digest=OTHER)
    states = states_of(study, results)
    assert [state.status for _, state in states] == ["ok", "ok", "stale", "missing"]
    assert seconds_left(states) == 36.0
    text = plan_text(study, results)
    assert "4 runs, 2 to do" in text
    assert "36 s" in text
    assert re.search(rf"{three.spec.run_id}: .*{OTHER}", text)
    finish(three)
    finish(four)
    assert "4 runs, 0 to do" in plan_text(study, results)
    assert seconds_left(states_of(study, results)) == 0.0


def test_plan_says_the_gpu_hours_that_the_runs_to_do_ask_for(study, results, runs, finish):
    asked = replace(study, resources=Resources(gpus=1, mem_mb=1, minutes=120))
    assert "GPU-hours" not in plan_text(study, results)
    assert re.search("4 to do.* 8 GPU-hours", plan_text(asked, results))
    finish(next(iter(runs.values())))
    assert re.search("3 to do.* 6 GPU-hours", plan_text(asked, results))


def test_plan_says_which_files_are_there_and_how_many_runs_wait_for_the_others(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("BENCHMARK_DATA", str(tmp_path))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hf" / "hub"))
    study = load_study("fast_ap")
    text = plan_text(study, tmp_path)
    assert re.search(r"^files: 0 of 6 .* 0 runs", text, re.MULTILINE)
    assert re.search(rf"15 runs .* googlenet\.tv_in1k \(TORCH_HOME={tmp_path}/torch\)\n", text)
    assert f"resnet18.tv_in1k (HF_HOME={tmp_path}/hf)" in text
    for archive in loader_of("sop").archives:
        for path in archive.provides:
            place = tmp_path / "sop" / path
            if path.endswith("/"):
                place.mkdir(parents=True, exist_ok=True)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.touch()
    weights = tmp_path / "torch" / "hub" / "checkpoints" / "googlenet-1378be20.pth"
    weights.parent.mkdir(parents=True)
    weights.touch()
    hub = tmp_path / "hf" / "hub" / "models--timm--resnet18.tv_in1k"
    (hub / "refs").mkdir(parents=True)
    (hub / "refs" / "main").write_text("abc")
    (hub / "snapshots" / "abc").mkdir(parents=True)
    (hub / "snapshots" / "abc" / "model.safetensors").touch()
    text = plan_text(study, tmp_path)
    of_sop = [run.spec for run, _ in states_of(study, tmp_path) if run.spec.dataset.name == "sop"]
    ready = [spec for spec in of_sop if "resnet50" not in spec.recipe.model.backbone]
    assert re.search(rf"^files: 3 of 6 .* {len(ready)} runs", text, re.MULTILINE)
    assert ready
    assert f"there: dataset sop ({tmp_path}/sop)" in text


def test_plan_shows_the_memory_of_each_block_beside_the_first_measured_peak(
    study, results, runs, finish
):
    asked = replace(study, resources=Resources(gpus=1, minutes=120, gpu_mem_mb=31232))
    (block,) = study.blocks
    rows = [line.split() for line in plan_text(asked, results).splitlines()]
    assert [block.name, "4", "4", "8", "30.5", "?"] in rows
    measured = {"memory": MemoryUse(1.0, 28877.0)}
    finish(next(iter(runs.values())), provenance=measured)
    rows = [line.split() for line in plan_text(asked, results).splitlines()]
    assert [block.name, "4", "3", "8", "30.5", "28.2"] in rows


def test_weights_of_a_study_are_fetched_once_and_listed_without_fetching(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    fetched = []
    monkeypatch.setattr(backbone, "create_backbone", lambda model: fetched.append(model.backbone))
    said = CliRunner().invoke(app, ["weights", "fast_ap", "--list"]).output
    assert said.count("missing: weights") == 3
    assert fetched == []
    said = CliRunner().invoke(app, ["weights", "fast_ap"]).output
    assert said.count("fetched: weights") == 3
    assert fetched == ["resnet18.tv_in1k", "resnet50.tv_in1k", "googlenet.tv_in1k"]
    weights = tmp_path / "hub" / "checkpoints" / "googlenet-1378be20.pth"
    weights.parent.mkdir(parents=True)
    weights.touch()
    said = CliRunner().invoke(app, ["weights", "fast_ap"]).output
    assert f"googlenet.tv_in1k (TORCH_HOME={tmp_path})" in said
    assert fetched[3:] == ["resnet18.tv_in1k", "resnet50.tv_in1k"]


def test_sources_of_each_recipe_are_listed_once():
    text = sources_text(load_study("smooth_ap"))
    assert text.count("recipe smooth_ap_sop_resnet50") == 1
    assert text.count("evaluation: Smooth-AP table 4") >= 1


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, "?"), (0, "0 s"), (40, "40 s"), (720, "12 min"), (11100, "3 h 05 min")],
)
def test_durations_are_readable(seconds, words):
    assert rough_duration(seconds) == words


def test_specifications_are_written_once_and_again_where_they_are_damaged(results, runs):
    assert write_specs(runs.values(), results) == 4
    paths = [results / run.spec.folder / "spec.json" for run in runs.values()]
    assert [RunSpec.read(path) for path in paths] == [run.spec for run in runs.values()]
    assert write_specs(runs.values(), results) == 0
    paths[0].write_text("{")
    assert write_specs(runs.values(), results) == 1
    assert RunSpec.read(paths[0]).digest == next(iter(runs.values())).digest


def test_a_finished_result_is_kept_where_it_is_of_another_specification(results, runs, finish):
    run = next(iter(runs.values()))
    folder = finish(run)
    write_spec(run, results)
    assert not (folder / "previous").exists()
    old = with_tau(run, 9.0).spec
    finish(run, spec_digest=old.digest)
    old.write(folder / "spec.json")
    write_spec(run, results)
    kept = folder / "previous" / old.digest
    assert json.loads((kept / "result.json").read_text())["spec_digest"] == old.digest
    assert RunSpec.read(kept / "spec.json") == old
    assert (kept / "provenance.json").is_file()
    assert RunSpec.read(folder / "spec.json") == run.spec
    put_away(run, results)
    assert {path.name for path in folder.iterdir()} == {"spec.json", "previous"}


def test_closing_words_name_states_verdicts_and_the_report(study, results, runs, finish):
    finish(next(iter(runs.values())))
    folder = results / "four"
    (folder / "report").mkdir(parents=True)
    (folder / "report" / "index.html").write_text("<html>")
    runner = CliRunner()
    for verb in ("collect", "verdicts"):
        done = runner.invoke(app, [verb, str(study.path), "--results", str(results)])
        assert done.exit_code == 0, done.output
    text = closing_words(study, results, finished=False)
    assert "4 runs: 1 ok, 3 missing" in text
    assert str(folder / "report" / "index.html") in text


def with_tau(run, tau):
    loss = replace(run.spec.loss, params={"tau": tau})
    return replace(run, spec=replace(run.spec, loss=loss))


@pytest.fixture
def finished(runs, results, finish):
    """Return (run, folder) of one finished run; the others have not been started."""
    run = next(iter(runs.values()))
    write_spec(run, results)
    return run, finish(run, spec_digest=run.digest)


def kept(runs, results, folder):
    """Settle the runs; return whether both files in a folder have kept their names."""
    for run in runs.values():
        settle(run, results)
    for path in ("spec", "result"):
        kept = (folder / f"{path}.json").exists()
        assert kept != (folder / f"{path}.outdated.json").exists()
    return kept


def test_runs_that_are_finished_or_not_started_are_left_alone(finished, runs, results):
    assert kept(runs, results, finished[1])
    others = [run for run in runs.values() if run is not finished[0]]
    assert not any((results / run.spec.folder).exists() for run in others)


@pytest.mark.parametrize("text", ['"seed": 9', "{", "[]", "\x00", None])
@pytest.mark.parametrize("write", [settle, write_spec])
def test_an_edited_torn_or_lost_specification_of_a_finished_run_is_written_anew(
    text, write, finished, runs, results
):
    run, folder = finished
    spec = folder / "spec.json"
    result = folder / "result.json"
    before = [path.read_bytes() for path in (spec, result)]
    if text is None:
        spec.unlink()
    else:
        if "seed" in text:
            text = spec.read_text().replace('"seed": 0', text)
        spec.write_text(text)
    assert settle(run, results, dry_run=True) == "finished"
    write(run, results)
    assert [path.read_bytes() for path in (spec, result)] == before
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["provenance.json", "result.json", "spec.json"]


def test_a_specification_of_another_study_is_put_away_where_no_run_has_finished(
    finished, runs, results
):
    run, folder = finished
    (folder / "result.json").unlink()
    assert settle(run, results) == "to do"
    assert (folder / "spec.json").is_file()
    other = with_tau(run, 9.0)
    assert settle(other, results, dry_run=True) == "outdated"
    assert settle(other, results) == "to do"
    assert not (folder / "spec.json").exists()


@pytest.mark.parametrize("text", ['{"spec_digest": "0123"}', "{}", "[]", '{"schema": 1, "ru', ""])
def test_a_result_of_another_specification_or_torn_makes_its_specification_anew(
    text, finished, runs, results
):
    _, folder = finished
    (folder / "result.json").write_text(text)
    assert not kept(runs, results, folder)


def test_a_result_of_another_schema_is_not_thrown_away(finished, runs, results):
    _, folder = finished
    result = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps({**result, "schema": 99}))
    assert kept(runs, results, folder)


def test_a_study_that_is_changed_back_finds_its_specification_as_it_was(finished, runs, results):
    run, folder = finished
    os.utime(folder / "spec.json", ns=(10**18, 10**18))
    before = (folder / "spec.json").read_bytes()
    other = with_tau(run, 9.0)
    assert not kept({run.spec.run_id: other}, results, folder)
    assert [status_in(folder, each.spec).status for each in (other, run)] == ["stale", "ok"]
    assert settle(run, results, dry_run=True) == "finished"
    assert kept(runs, results, folder)
    assert (folder / "spec.json").read_bytes() == before
    assert (folder / "spec.json").stat().st_mtime_ns == 10**18


def test_the_result_of_a_specification_that_was_put_away_is_kept_with_it(finished, runs, results):
    run, folder = finished
    other = with_tau(run, 9.0)
    settle(other, results)
    write_spec(other, results)
    names = {path.name for path in (folder / "previous" / run.digest).iterdir()}
    assert {"spec.json", "result.json"} <= names
    assert not list(folder.glob("*.outdated.json"))


def test_writing_the_specification_of_a_study_changed_back_keeps_the_finished_result(
    finished, runs, results
):
    run, folder = finished
    before = (folder / "result.json").read_bytes()
    settle(with_tau(run, 9.0), results)
    assert write_specs([run], results) == 1
    assert (folder / "result.json").read_bytes() == before
    assert not list(folder.glob("*.outdated.json"))


def test_a_dry_run_says_what_is_outdated_and_changes_nothing(finished, runs, results):
    run, folder = finished
    (folder / "result.json").write_text("{")
    assert settle(run, results, dry_run=True) == "outdated"
    assert (folder / "result.json").read_text() == "{"
    assert settle(run, results) == "to do"
    assert not (folder / "result.json").exists()
