"""The verbs on a made-up study: files written, text printed, exit statuses."""

from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd
import pytest
from made_up_results import long_table, made_up_study, without_number, write_long
from typer.testing import CliRunner

import benchmark.study
from benchmark.__main__ import app
from benchmark.core.errors import ConfigError, ReferenceDataError, RunError
from benchmark.papers import verdicts
from benchmark.papers.verdicts import Verdict
from benchmark.study.model import References

MEANS = {"smooth_ap": 0.6, "sup_ap": 0.62, "roadmap": 0.63}


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Returns a results folder with finished runs of a study whose frozen reference lies inside
    it."""
    folder = tmp_path / "results"
    (folder / "toy").mkdir(parents=True)
    write_long(long_table(MEANS), folder / "toy")
    frozen = folder / "reference" / "toy.csv"
    study = made_up_study(tuple(MEANS), name="toy", references=References((), str(frozen)))
    monkeypatch.setattr(benchmark.study, "load_study", lambda name, results=None: study)
    return folder


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_build_writes_its_files(results):
    (results / "toy" / "provenance.json").write_text("{}")
    assert run("build", "toy", "--results", results).exit_code == 0
    written = {path.stem for path in (results / "toy" / "stats").iterdir()}
    assert {"summary", "paired", "ablation", "gain"} < written
    for name in ("tables", "figures", "sweeps"):
        assert json.loads((results / "toy" / "papers" / f"{name}.json").read_text()) == []


def test_frozen_runs_are_then_judged_and_reproduced(results):
    assert "froze 15 runs" in run("freeze", "toy", "--results", results).output
    assert run("verdicts", "toy", "--results", results).exit_code == 0
    table = pd.read_csv(results / "toy" / "verdicts.csv")
    assert len(pd.read_csv(results / "toy" / "verdicts_other.csv")) == 0, (
        "of published numbers only"
    )
    assert len(table) == 6 and set(table["verdict"]) == {"reproduced"}
    found = run("check", "toy", "--results", results)
    assert found.exit_code == 0 and "6 identical" in found.output
    assert "reproduced:" not in found.output.partition("rule:")[0]


def test_check_exits_with_one_and_names_the_number_when_it_drifted(results):
    run("freeze", "toy", "--results", results)
    write_long(long_table({**MEANS, "sup_ap": 0.5}), results / "toy")
    found = run("check", "toy", "--results", results)
    assert found.exit_code == 1 and "drifted: glyphs/tiny/sup_ap/bs32 test map_at_r" in found.output


def test_a_study_without_a_frozen_file_has_nothing_to_judge(results):
    found = run("check", "toy", "--results", results)
    assert found.exit_code == 0 and "names no printed numbers" in found.output
    found = run("verdicts", "toy", "--results", results)
    assert "toy.csv yet: 'python -m benchmark freeze toy'" in found.stderr


def test_freeze_refuses_holes_unless_asked(results):
    write_long(without_number(long_table(MEANS), "seed == 0", "missing"), results / "toy")
    assert isinstance(run("freeze", "toy", "--results", results).exception, ReferenceDataError)
    assert "froze 12 runs" in run("freeze", "toy", "--results", results, "--partial").output


def test_an_unknown_selection_names_the_known_ones(results):
    found = run("check", "toy", "--results", results, "--selection", "lats")
    assert isinstance(found.exception, ConfigError) and "did you mean 'last'" in str(
        found.exception
    )


def test_results_that_were_not_collected_are_a_clear_error(results):
    (results / "toy" / "runs.csv").unlink()
    for verb in ("build", "verdicts", "check", "claims", "freeze"):
        assert isinstance(run(verb, "toy", "--results", results).exception, RunError)


def test_check_fails_for_drifts_that_stand_and_with_any_for_all(results, monkeypatch):
    drift = Verdict("roadmap2021v2", "table5", batch_size=128, level=0.05)
    drift = replace(drift, verdict="drifted", stands=False, changes_under="laboratory")
    monkeypatch.setattr(verdicts, "judge_study", lambda *_: [drift])
    assert run("check", "toy", "--results", results).exit_code == 0
    assert run("check", "toy", "--results", results, "--any").exit_code == 1
    stands = replace(drift, stands=True, changes_under="spread tails")
    monkeypatch.setattr(verdicts, "judge_study", lambda *_: [stands])
    assert run("check", "toy", "--results", results).exit_code == 1
