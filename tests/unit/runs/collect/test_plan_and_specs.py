"""The plan tells what is left; specifications are written once and never bury a finished result."""

from __future__ import annotations

import json
from dataclasses import replace

from made_up_records import TIMING
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.records import RunSpec
from benchmark.report.summary import closing_words
from benchmark.runs.folders import write_spec, write_specs
from benchmark.runs.plan import as_text, duration, plan, sources_text
from benchmark.study import Resources, load_study

OTHER = "0123456789abcdef"  # digest of another specification


def test_plan_counts_states_and_estimates_from_runs_of_the_same_shape(study, results, runs, finish):
    one, two, three, _ = runs.values()
    finish(one)
    finish(two, provenance={"timing": replace(TIMING, total_seconds=24.0)})
    finish(three, spec_digest=OTHER)
    found = plan(study, results)
    (row,) = found.rows
    assert (row.runs, row.to_do, row.statuses["ok"], row.statuses["stale"]) == (4, 2, 2, 1)
    assert row.seconds_left == 36.0
    text = as_text(found)
    assert "4 runs, 2 to do" in text and "36 s" in text
    assert f"{three.spec.run_id}: the result is of specification {OTHER}" in text


def test_plan_does_not_guess_without_a_finished_run(study, results):
    (row,) = plan(study, results).rows
    assert row.seconds_left is None
    assert as_text(plan(study, results)).splitlines()[-3].endswith("?")


def test_plan_of_a_finished_study_has_nothing_left(study, results, runs, finish):
    for run in runs.values():
        finish(run)
    assert "4 runs, 0 to do" in as_text(plan(study, results))
    assert plan(study, results).rows[0].seconds_left == 0.0


def test_plan_says_the_gpu_hours_that_the_runs_to_do_ask_for(study, results, runs, finish):
    asked = replace(study, resources=Resources(gpus=1, mem_mb=1, minutes=90))
    assert "GPU-hours" not in as_text(plan(study, results))
    assert "4 to do, at most 6 GPU-hours" in as_text(plan(asked, results))
    finish(next(iter(runs.values())))
    assert plan(asked, results).gpu_hours == 4.5


def test_sources_of_each_recipe_are_listed_once():
    text = sources_text(load_study("smooth_ap"))
    assert text.count("recipe smooth_ap_sop_resnet50") == 1
    assert text.count("evaluation: Smooth-AP table 4") >= 1


def test_durations_are_readable():
    assert [duration(s) for s in (None, 0, 40, 720, 11100)] == [
        "?",
        "0 s",
        "40 s",
        "12 min",
        "3 h 05 min",
    ]


def test_specifications_are_written_once(results, runs):
    assert write_specs(runs, results) == 4
    for run in runs.values():
        assert RunSpec.read(results / run.spec.folder / "spec.json") == run.spec
    assert write_specs(runs, results) == 0


def test_a_damaged_specification_is_written_again(results, runs):
    write_specs(runs, results)
    path = results / next(iter(runs.values())).spec.folder / "spec.json"
    path.write_text("{")
    assert write_specs(runs, results) == 1
    assert RunSpec.read(path).digest == next(iter(runs.values())).digest


def test_a_finished_result_of_another_specification_is_kept(results, runs, finish):
    run = next(iter(runs.values()))
    old = replace(run.spec, loss=replace(run.spec.loss, params={"tau": 9.0}))
    folder = finish(run, spec_digest=old.digest)
    old.write(folder / "spec.json")
    assert write_spec(run, results)
    kept = folder / "previous" / old.digest
    assert json.loads((kept / "result.json").read_text())["spec_digest"] == old.digest
    assert RunSpec.read(kept / "spec.json") == old
    assert (kept / "provenance.json").is_file()
    assert RunSpec.read(folder / "spec.json") == run.spec


def test_a_result_of_the_same_specification_is_not_copied(results, runs, finish):
    run = next(iter(runs.values()))
    folder = finish(run)
    write_spec(run, results)
    assert not (folder / "previous").exists()


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
    assert "no references" in text
    assert str(folder / "report" / "index.html") in text and "the same command continues it" in text
