"""Runs of other laboratories stand beside the own ones, and nothing is pooled."""

from __future__ import annotations

import json
import os
import shutil

import pandas as pd
import pytest
from made_up_records import made_up_provenance, made_up_result
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.errors import ConfigError, DataError
from benchmark.core.records import LOG, PROVENANCE, RESULT
from benchmark.runs.collecting import collect
from benchmark.runs.run_table import RunTable


@pytest.fixture
def trained(results):
    """Return what writes the files of a run as a laboratory left them, at a score; their folder."""

    def write(run, laboratory: str, score: float, **changes):
        folder = results / laboratory / run.spec.folder
        made_up_result(run.spec, score, **changes).write(folder / RESULT)
        made_up_provenance(run.spec, platform=f"of {laboratory}").write(folder / PROVENANCE)
        return folder

    return write


@pytest.fixture
def all_trained(runs, trained):
    """Return what writes all four runs of a laboratory: seeds 0 and 1 score 0.02 apart."""

    def write(laboratory: str, score: float) -> None:
        for run in runs.values():
            trained(run, laboratory, score + 0.02 * run.spec.seed)

    return write


@pytest.fixture
def command(study, results):
    """Return what runs a verb on the study; it must end well."""

    def run(verb: str) -> str:
        done = CliRunner().invoke(app, [verb, str(study.path), "--results", str(results)])
        assert done.exit_code == 0, done.output
        return done.output

    return run


def files(folder) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file() and "report" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_rows_of_two_laboratories_stand_side_by_side_and_own_files_stay(
    results, all_trained, command
):
    all_trained(".", 0.5)
    command("collect")
    command("build")
    own = files(results / "four")
    all_trained("@lyon", 0.6)
    assert "4 finished @lyon" in command("collect")
    command("build")
    both = files(results / "four")
    assert own.items() <= both.items()
    added = {name for name in both.keys() - own.keys() if not name.startswith("tables/")}
    assert added == {"@lyon/runs.csv", "@lyon/scores.csv", "stats/laboratories.csv"}
    page = (results / "four" / "report" / "index.html").read_text()
    assert page.count("<td>lyon</td>") == 2
    assert "nothing is pooled" in page
    shutil.rmtree(results / "@lyon")
    command("collect")
    command("build")
    assert files(results / "four") == own


def test_each_laboratory_has_its_own_mean_spread_and_difference(results, all_trained, command):
    all_trained(".", 0.5)
    all_trained("@lyon", 0.6)
    all_trained("@nice", 0.3)
    command("collect")
    command("build")
    table = pd.read_csv(results / "four" / "stats" / "laboratories.csv", keep_default_na=False)
    rows = table[table["loss"] == "roadmap"]
    assert list(rows["laboratory"]) == ["", "lyon", "nice"]
    assert list(rows["n"]) == [2, 2, 2]
    assert list(rows["mean"]) == pytest.approx([0.51, 0.61, 0.31])
    assert list(rows["sd"]) == pytest.approx([0.02 / 2**0.5] * 3)
    assert list(rows["difference"]) == pytest.approx([0, 0.1, -0.2])


def test_what_one_laboratory_alone_has_is_not_beside_anything(
    results, runs, trained, all_trained, command
):
    all_trained(".", 0.5)
    (first, *_) = runs.values()
    trained(first, "@lyon", 0.6)
    command("collect")
    command("build")
    table = pd.read_csv(results / "four" / "stats" / "laboratories.csv", keep_default_na=False)
    assert list(table["laboratory"]) == ["", "lyon"]
    assert list(table["n"]) == [2, 1]
    assert set(table["loss"]) == {first.spec.loss.label}


def test_a_folder_without_runs_of_the_study_gives_a_reason(results, runs, trained, command):
    (results / "@lyon" / "runs").mkdir(parents=True)
    for run in runs.values():
        trained(run, ".", 0.5)
        trained(run, "@nice", 0.5, spec_digest="0123456789abcdef")
    assert "4 ok" in command("collect")
    command("build")
    assert len(RunTable.read(results / "four" / "@nice").runs) == 0
    text = (results / "four" / "tables" / "laboratories.md").read_text()
    assert "no other laboratory has finished a run" in text


def test_a_link_is_a_folder_of_results_too(tmp_path, results, runs, trained, all_trained, command):
    all_trained("../theirs", 0.6)
    all_trained(".", 0.5)
    (results / "@lyon").symlink_to(tmp_path / "theirs")
    assert "4 finished @lyon" in command("collect")


def test_a_run_that_lies_in_two_folders_is_refused_with_both(
    study, results, runs, trained, messages
):
    one, two, *_ = runs.values()
    trained(one, ".", 0.5)
    shutil.copytree(results / "runs", results / "@lyon" / "runs")
    trained(two, "@lyon", 0.5)
    shutil.copytree(results / "@lyon", results / "@nice")
    with pytest.raises(ConfigError) as caught:
        collect(study, results)
    messages(caught.value)
    assert len(caught.value.problems) == 3
    assert not (results / "four").exists()


@pytest.mark.parametrize(
    "name", ["@", "@../x", "@-rf", "@a b", "@<script>", "@a\nb", "@\udcff", "@" + 81 * "a", "@.."]
)
def test_a_name_is_a_label(study, results, name):
    folder = results / name.replace("/", "")
    (folder / "runs").mkdir(parents=True)
    with pytest.raises(ConfigError) as caught:
        collect(study, results)
    assert len(caught.value.problems) == 1


def test_what_has_no_runs_is_no_laboratory(study, results, messages):
    results.mkdir()
    (results / "@gone").symlink_to(results / "nowhere")
    (results / "@text").write_text("lyon")
    (results / "@theirs" / "results" / "runs").mkdir(parents=True)
    with pytest.raises(ConfigError) as caught:
        collect(study, results)
    messages(caught.value)
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -1e300, "0.5", None])
def test_what_a_stranger_made_up_costs_nothing_else(
    results, runs, trained, all_trained, command, score
):
    all_trained(".", 0.5)
    for run in runs.values():
        path = trained(run, "@lyon", 0.5) / RESULT
        content = json.loads(path.read_text())
        last = content["metrics"]["last"]
        last["<script>evil</script>"] = {"recall_at_1": 0.9}
        last["test"]["recall_at_1"] = score
        path.write_text(json.dumps(content))
    command("collect")
    command("build")
    assert not (results / "four" / "report" / "failed.txt").read_text()
    assert "<script>evil" not in (results / "four" / "report" / "index.html").read_text()
    summary = pd.read_csv(results / "four" / "stats" / "summary.csv")
    assert set(summary["split"]) == {"test"}


def test_a_split_of_a_stranger_is_escaped(results, runs, trained, command):
    for run in runs.values():
        for laboratory in ("@lyon", "@nice"):
            path = trained(run, laboratory, 0.5) / RESULT
            content = json.loads(path.read_text())
            content["metrics"]["last"] = {"<script>evil</script>": {"recall_at_1": 0.9}}
            path.write_text(json.dumps(content))
    command("collect")
    command("build")
    page = (results / "four" / "report" / "index.html").read_text()
    assert "<script>evil" not in page
    assert "&lt;script&gt;evil" in page


def test_scores_are_those_of_the_folder_whatever_the_file_calls_its_run(
    study, results, runs, trained
):
    one, two, *_ = runs.values()
    trained(one, "@lyon", 0.5)
    trained(two, "@lyon", 0.6, run_id=one.spec.run_id)
    collect(study, results)
    scores = RunTable.read(results / "four" / "@lyon").test_scores("last", ["recall_at_1"])
    found = dict(zip(scores["run_id"], scores["value"], strict=True))
    assert found == {one.spec.run_id: 0.5, two.spec.run_id: 0.6}


@pytest.mark.parametrize("name", [RESULT, PROVENANCE])
def test_a_pipe_is_refused_and_not_waited_for(study, results, runs, trained, name):
    (first, *_) = runs.values()
    folder = trained(first, "@lyon", 0.5)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(DataError, match="not a regular file"):
        collect(study, results)


def test_a_damaged_result_is_left_out_and_no_log_is_read(study, results, runs, trained):
    one, two, three, _ = runs.values()
    for run in (one, two, three):
        trained(run, "@lyon", 0.5)
    (results / "@lyon" / one.spec.folder / RESULT).write_text(100_000 * "[")
    (results / "@lyon" / two.spec.folder / RESULT).unlink()
    os.mkfifo(results / "@lyon" / two.spec.folder / LOG)  # reading it would never end
    assert collect(study, results)["finished @lyon"] == 1
    table = RunTable.read(results / "four" / "@lyon")
    assert list(table.runs["run_id"]) == [three.spec.run_id]
    assert not table.runs["reason"].any()


def test_an_own_record_says_nothing_of_other_laboratories(study, results, all_trained):
    all_trained(".", 0.5)
    collect(study, results)
    path = results / "four" / PROVENANCE
    before = json.loads(path.read_text())
    all_trained("@lyon", 0.6)
    collect(study, results)
    assert json.loads(path.read_text()) == before
