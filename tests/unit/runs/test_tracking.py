"""Runs in MLflow: by import, each once, however often it is called; and by a process of its own
while a run trains. ``tests/outage`` has the servers and stores that fail."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import time
import urllib.request
from types import SimpleNamespace

import pytest
from made_up_records import make_epochs, make_spec, make_specs, write_epochs, write_run
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.code_version import PACKAGE, code_version
from benchmark.core.errors import RunError
from benchmark.core.files import write_text
from benchmark.core.records import RESULT, SPEC
from benchmark.core.results import EpochRecord
from benchmark.runs import tracking
from benchmark.runs.tracking import connected, experiment_of, import_runs
from benchmark.training import progress
from benchmark.training.progress import logged_live

DATABASE = "mlflow.db"
NOTE = "mlflow.note.content"
CELL = "glyphs_tiny,resnet10t,smooth_ap,32"
VERDICTS = f"""dataset,setting,loss,batch_size,split,metric,verdict
{CELL},test,map,drifted
{CELL},test,map,reproduced
{CELL},small,map,inconclusive
cub,resnet50,,,test,map,not_run
"""


def bring(results, specs, study="toy") -> tuple[int, int, int]:
    found = import_runs(study, "A toy", specs, results, results / "none")[0]
    return tuple(found[name] for name in ("imported", "present", "unfinished"))


def stored(results, condition="", study="toy"):
    with connected(results) as client:
        return client, client.search_runs([experiment_of(client, study)], condition)


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """Import a study of eight runs by the command: one diverged, one unfinished, one of old code.

    Returns results, specifications and what was printed.
    """
    results = tmp_path_factory.mktemp("toy")
    specs = make_specs()
    diverged, old, *others, _ = specs.values()
    write_run(results, diverged, status="diverged")
    write_run(results, old, code="0.0.1+old")
    for spec in others:
        write_run(results, spec)
    write_text(results / "toy" / "report" / "index.html", "the page")
    write_text(results / "toy" / "verdicts.csv", VERDICTS)
    study = SimpleNamespace(
        name="toy",
        title="A toy",
        question="Does it work?",
        metrics=["map"],
        folder=lambda results: results / "toy",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmark.study.load_study", lambda name, results=None: study)
        grid = {name: SimpleNamespace(spec=spec) for name, spec in specs.items()}
        patch.setattr("benchmark.study.grid.expand", lambda study: grid)
        command = ["track", "import", "toy", "--results", str(results)]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        again = CliRunner().invoke(app, command)
    assert "0 imported, 7 present, 1 unfinished" in again.output
    return results, specs, done.output


def test_every_finished_run_is_imported_once_and_marked(toy):
    results, specs, said = toy
    assert "7 imported, 0 present, 1 unfinished" in said
    _, runs = stored(results)
    found = {run.data.tags["run_id"]: run for run in runs}
    assert sorted(found) == sorted(list(specs)[:-1])
    assert len(runs) == 7
    diverged, old, *others = (found[name] for name in list(specs)[:-1])
    assert diverged.info.status == "FAILED"
    assert diverged.data.tags["status"] == "diverged"
    assert diverged.data.tags[NOTE].startswith("loss is nan at step 40")
    assert "recall_at_1" not in diverged.data.metrics
    assert "curve/recall_at_1" in diverged.data.metrics
    command = ["git", "-C", PACKAGE, "log", "-1", "--format=%H", "--", "."]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    assert {run.data.tags.get("mlflow.source.git.commit", "") for run in others} == {commit}
    assert "mlflow.source.git.commit" not in old.data.tags
    _, judged = stored(results, "tags.`verdict.map` = 'drifted, reproduced'")
    assert {run.data.tags["run_id"] for run in judged} == set(list(specs)[:2])
    assert judged[0].data.tags["verdict.small/map"] == "inconclusive"
    assert not any(name.startswith("verdict.") for name in others[-1].data.tags)


def test_an_imported_run_has_name_parameters_series_metrics_tags_and_artifacts(toy):
    results, specs, _ = toy
    spec = list(specs.values())[2]
    client, (run,) = stored(results, f"tags.run_id = '{spec.run_id}'")
    assert run.info.run_name == "smooth_ap bs128 seed0 (glyphs_tiny/resnet10t)"
    assert run.info.status == "FINISHED"
    assert run.info.user_id == "benchmark"
    assert run.info.end_time - run.info.start_time == 11_000
    assert run.data.params == {param.key: param.value for param in tracking.params(spec)}
    assert {**run.data.params, "loss": "smooth_ap", "optimizer.lr": "1e-05"} == run.data.params
    assert run.data.metrics["recall_at_1"] == pytest.approx(0.75)
    assert run.data.metrics["best/recall_at_1"] == pytest.approx(0.70)
    assert run.data.metrics["cost/total_seconds"] == 11.0
    history = client.get_metric_history(run.info.run_id, "curve/recall_at_1")
    start = run.info.start_time
    assert [(each.step, each.timestamp - start, round(each.value, 2)) for each in history] == [
        (1, 2000, 0.55), (2, 4000, 0.6), (3, 6000, 0.65), (4, 8000, 0.7), (5, 10_000, 0.75)
    ]  # fmt: skip
    expected = {"study": "toy", "run_id": spec.run_id, "spec_digest": spec.digest, "status": "ok"}
    expected |= {"code_version": code_version(), "dataset_fingerprint": "f00d"}
    assert {**run.data.tags, **expected} == run.data.tags
    (data,) = run.inputs.dataset_inputs
    assert data.dataset.name == "glyphs_tiny"
    assert data.dataset.digest == "f00d"
    named = "dataset.name = 'glyphs_tiny' and dataset.context = 'training'"
    assert len(stored(results, named)[1]) == 7
    (folder,) = (results / "mlartifacts").glob(f"*/{run.info.run_id}/artifacts")
    names = ["metrics.jsonl", "provenance.json", "result.json", "spec.json"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert json.loads((folder / RESULT).read_text())["spec_digest"] == spec.digest
    assert json.loads((folder / SPEC).read_text())["dataset"]["params"]["root"] == "…/glyphs"


def test_the_experiment_describes_the_study_and_shows_its_report(toy):
    results, _, said = toy
    client, runs = stored(results)
    experiment = client.get_experiment_by_name("toy")
    view = f"#/experiments/{experiment.experiment_id}/runs?viewStateShareKey=columns"
    served = "/api/2.0/mlflow-artifacts/artifacts/reports/toy/index.html"
    links, *words = experiment.tags[NOTE].split("\n\n")
    assert links.startswith(f"[Report]({served}), [")
    assert links.endswith(f"]({view})")
    assert words == ["**A toy**", "Does it work?"]
    assert all(f"[Report of the study]({served})" in run.data.tags[NOTE] for run in runs)
    assert (results / "mlartifacts" / "reports" / "toy" / "index.html").read_text() == "the page"
    assert f"http://127.0.0.1:5000/{view} " in said
    state = json.loads(experiment.tags["mlflow.sharedViewState.columns"])
    columns = state["selectedColumns"]
    assert columns[:3] == ["params.`loss`", "params.`seed`", "params.`batch_size`"]
    assert columns[-1].startswith("metrics.`")
    assert (state["orderByKey"], state["orderByAsc"]) == ("tags.`order`", True)


def test_the_store_and_its_artifacts_name_no_folder_and_no_user(toy):
    results = toy[0]
    with sqlite3.connect(results / DATABASE) as database:
        places = database.execute("select artifact_location from experiments").fetchall()
    assert places == [("mlflow-artifacts:/0",), ("mlflow-artifacts:/1",)]
    kept = [path for path in (results / "mlartifacts").rglob("*") if path.is_file()]
    for path in (results / DATABASE, *kept):
        content = path.read_bytes()
        assert not any(each in content for each in (b"/home", b"somebody", str(results).encode()))


def test_runs_trained_anew_replace_others_and_may_belong_to_two_studies(toy):
    results = toy[0]
    old = make_spec(seed=7)
    new = make_spec(seed=7, margin=0.5)
    write_run(results, old, code="0.0.1+old")
    assert bring(results, [old], "other") == (1, 0, 0)
    with connected(results) as client:
        client.set_experiment_tag(experiment_of(client, "other"), NOTE, "ours")
    write_run(results, old)
    assert bring(results, [old], "other") == (1, 0, 0)
    assert bring(results, [new], "other") == (0, 0, 1)
    write_run(results, new)
    assert bring(results, [new], "other") == (1, 0, 0)
    assert bring(results, [new], "other") == (0, 1, 0)
    client, (run,) = stored(results, study="other")
    assert run.data.tags["spec_digest"] == new.digest
    assert client.get_experiment_by_name("other").tags[NOTE] == "ours", "what somebody wrote"
    assert bring(results, [new], "third") == (1, 0, 0)
    assert [len(stored(results, study=name)[1]) for name in ("other", "third")] == [1, 1]


def test_values_that_are_not_finite_are_left_out_and_other_splits_carry_their_name(tmp_path):
    records = make_epochs(make_spec(), 2)
    write_epochs(
        tmp_path, [vary(records[0], loss=None), vary(records[1], evaluation={"s": {"m@1": 0.5}})]
    )
    names = [(each.key, each.step) for each in tracking.curves(tmp_path, 0.0)]
    assert ("curve/loss", 1) not in names
    assert ("curve/loss", 2) in names
    assert ("curve/s/m_1", 2) in names, "MLflow refuses some letters"


def vary(record: EpochRecord, **changes: object) -> EpochRecord:
    return EpochRecord(**{**vars(record), **changes})


def test_a_server_that_never_answers_costs_an_import_a_bounded_time(
    tmp_path, monkeypatch, hanging_server
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", hanging_server)
    monkeypatch.setattr(tracking, "PATIENCE", 1)
    with pytest.raises(RunError, match=hanging_server):
        bring(tmp_path, [])


@pytest.mark.parametrize(
    ("uri", "study"),
    [(None, "toy"), ("sqlite:///somewhere.db", "toy"), ("http://127.0.0.1:9", None)],
    ids=["no variable", "local store", "no study"],
)
def test_without_a_server_and_a_study_nothing_is_started(
    tmp_path, monkeypatch, quick_logger, uri, study
):
    monkeypatch.delenv("BENCHMARK_STUDY")
    for name, value in (("MLFLOW_TRACKING_URI", uri), ("BENCHMARK_STUDY", study)):
        if value:
            monkeypatch.setenv(name, value)
    with logged_live(tmp_path / SPEC, tmp_path):
        assert quick_logger == []


def test_a_run_is_on_a_real_server_while_it_trains_and_whole_or_killed_afterwards(
    tmp_path, monkeypatch, real_server, quick_logger
):
    monkeypatch.setattr(progress, "SMALL_SHARE", 9.9)  # these runs take no time
    server = real_server(tmp_path / "server")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.start())
    results = tmp_path / "results"
    whole = make_spec(seed=0)
    stopped = make_spec(seed=1)
    for spec in (whole, stopped):
        folder = results / spec.folder
        spec.write(folder / SPEC)
        with logged_live(folder / SPEC, folder):
            write_epochs(folder, make_epochs(spec)[:2])
            wait_until(lambda: [epochs for _, epochs in logged(results, spec)] == [[1, 2]])  # noqa: B023
            if spec == whole:
                write_run(results, whole)
    assert logged(results, whole) == [("FINISHED", [1, 2, 3, 4, 5])]
    assert logged(results, stopped) == [("KILLED", [1, 2])]
    write_text(tmp_path / "report" / "index.html", "the page")
    found, view = import_runs("toy", "A toy", [whole, stopped], results, tmp_path / "none")
    assert found == {"imported": 0, "present": 1, "unfinished": 1}
    assert view.startswith(f"{server.address}/#/experiments/")
    with connected(results) as client:
        (run,) = client.search_runs(
            [experiment_of(client, "toy")], "attributes.status = 'FINISHED'"
        )
        assert len(client.list_artifacts(run.info.run_id)) == 4
    address = run.data.tags[NOTE].partition("](")[2].strip(")")
    assert urllib.request.urlopen(server.address + address).read() == b"the page"


def logged(results, spec) -> list[tuple[str, list[int]]]:
    """Returns the status and the epochs of every run of a specification on the server."""
    with connected(results) as client:
        condition = f"tags.run_id = '{spec.run_id}'"
        found = client.search_runs([experiment_of(client, "toy")], condition)
        runs = [run.info for run in found]
        names = [(run, client.get_metric_history(run.run_id, "curve/loss")) for run in runs]
    return [(run.status, [point.step for point in points]) for run, points in names]


def wait_until(condition, seconds: float = 90.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the server never showed it"
        time.sleep(0.3)
