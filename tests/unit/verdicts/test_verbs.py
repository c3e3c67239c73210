"""The verbs on a made-up study: files written, text printed, exit statuses."""

from __future__ import annotations

import pandas as pd
import pytest
from made_up_results import long_table, made_up_study, without_number, write_long
from typer.testing import CliRunner

import benchmark.study
from benchmark.__main__ import app
from benchmark.core.errors import ConfigError, ReferenceDataError, RunError
from benchmark.study.model import References
from benchmark.verdicts import judging
from benchmark.verdicts.pairs import typed
from benchmark.verdicts.verdicts import VERDICT

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
    assert {"summary", "paired", "ablation"} < written
    assert not (results / "toy" / "papers").exists()


def test_frozen_runs_are_then_judged_and_reproduced(results):
    assert "froze 15 runs" in run("freeze", "toy", "--results", results).output
    assert run("verdicts", "toy", "--results", results).exit_code == 0
    table = pd.read_csv(results / "toy" / "verdicts.csv")
    assert len(pd.read_csv(results / "toy" / "verdicts_other.csv")) == 0, (
        "of published numbers only"
    )
    assert len(table) == 6
    assert set(table["verdict"]) == {"reproduced"}
    found = run("check", "toy", "--results", results)
    assert found.exit_code == 0
    assert "6 identical" in found.output
    assert "reproduced:" not in found.output.partition("rule:")[0]


def test_check_exits_with_one_and_names_the_number_when_it_drifted(results):
    run("freeze", "toy", "--results", results)
    write_long(long_table({**MEANS, "sup_ap": 0.5}), results / "toy")
    found = run("check", "toy", "--results", results)
    assert found.exit_code == 1
    assert "drifted: glyphs/tiny/sup_ap/bs32 test map_at_r" in found.output


def test_a_study_without_a_frozen_file_has_nothing_to_judge(results):
    found = run("check", "toy", "--results", results)
    assert found.exit_code == 0
    assert "names no printed numbers" in found.output
    found = run("verdicts", "toy", "--results", results)
    assert "toy.csv yet: 'python -m benchmark freeze toy'" in found.stderr


def test_freeze_refuses_holes_unless_asked(results):
    write_long(without_number(long_table(MEANS), "seed == 0", "missing"), results / "toy")
    assert isinstance(run("freeze", "toy", "--results", results).exception, ReferenceDataError)
    assert "froze 12 runs" in run("freeze", "toy", "--results", results, "--partial").output


def test_an_unknown_selection_names_the_known_ones(results):
    found = run("check", "toy", "--results", results, "--selection", "lats")
    assert isinstance(found.exception, ConfigError)
    assert "did you mean 'last'" in str(found.exception)


def test_results_that_were_not_collected_are_a_clear_error(results):
    (results / "toy" / "runs.csv").unlink()
    for verb in ("build", "verdicts", "check", "claims", "freeze"):
        assert isinstance(run(verb, "toy", "--results", results).exception, RunError)


def test_check_fails_for_drifts_that_stand_and_with_any_for_all(results, monkeypatch):
    drift = typed({}, VERDICT).reindex([0]).assign(
        source="roadmap2021v2", table="table5", metric="map", batch_size=128, level=0.05,
        verdict="drifted", direction="low", interim=False, stands=False, changes_under="laboratory",
    )  # fmt: skip
    monkeypatch.setattr(judging, "judge_study", lambda *_: {"paper": drift})
    assert run("check", "toy", "--results", results).exit_code == 0
    assert run("check", "toy", "--results", results, "--any").exit_code == 1
    stands = drift.assign(stands=True, changes_under="spread tails")
    monkeypatch.setattr(judging, "judge_study", lambda *_: {"paper": stands})
    assert run("check", "toy", "--results", results).exit_code == 1


@pytest.fixture
def judged_anew(results, monkeypatch):
    """Judge frozen runs; return the list that has each later judging's rules."""
    assert run("freeze", "toy", "--results", results).exit_code == 0
    assert run("verdicts", "toy", "--results", results).exit_code == 0
    asked = []
    judge = judging.judge_study

    def counted(study, table, selections):
        asked.append([*selections])
        return judge(study, table, selections)

    monkeypatch.setattr(judging, "judge_study", counted)
    return asked


def test_check_and_explain_read_what_was_judged(results, judged_anew):
    checked = run("check", "toy", "--results", results)
    told = run("explain", "sup_ap/map_at_r", "--study", "toy", "--results", results)
    assert judged_anew == []
    assert checked.exit_code == told.exit_code == 0
    assert "6 identical" in checked.output
    assert "identical under 5 common seeds" in told.output
    (results / "toy" / "verdicts.csv").unlink()
    assert run("check", "toy", "--results", results).output == checked.output
    assert judged_anew == [["paper"]]


@pytest.mark.parametrize("changed", ["runs", "frozen", "rule"])
def test_check_judges_anew_what_was_judged_of_something_else(results, judged_anew, changed):
    rule = []
    if changed == "runs":
        write_long(long_table({**MEANS, "sup_ap": 0.5}), results / "toy")
    elif changed == "frozen":
        frozen = results / "reference" / "toy.csv"
        frozen.write_text(frozen.read_text().replace("sup_ap", "gone"))
    else:
        rule = ["--selection", "best"]
    checked = run("check", "toy", "--results", results, *rule).output
    assert judged_anew == [[*rule[1:]] or ["paper"]]
    assert "6 identical" not in checked
