"""Runs in MLflow: by import, each once, however often and by how many it is called; and by a
process of its own while a run trains, which waits for no bad server and does not outlive it long.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
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

DATABASE, NOTE = "mlflow.db", "mlflow.note.content"


@pytest.fixture(scope="session")
def prepared(tmp_path_factory) -> Path:
    """Results with a store, which no test changes: making one takes seconds."""
    results = tmp_path_factory.mktemp("prepared")
    bring(results, [])
    return results


@pytest.fixture
def results(tmp_path, prepared) -> Path:
    """Results with a store of their own."""
    shutil.copy(prepared / DATABASE, tmp_path)
    return tmp_path


def bring(results, specs, judged="none", study="toy") -> dict[str, int]:
    return import_runs(study, "A toy", specs, results, results / judged)[0]


def counts(imported=0, present=0, unfinished=0) -> dict[str, int]:
    return {"imported": imported, "present": present, "unfinished": unfinished}


def stored(results, condition="", study="toy"):
    with connected(results) as client:
        return client, client.search_runs([experiment_of(client, study)], condition)


def test_a_deleted_experiment_is_an_error_with_the_command_that_restores_it(
    results, monkeypatch, tmp_path
):
    write_run(results, make_spec())
    bring(results, [make_spec()])
    with connected(results) as client:
        number = experiment_of(client, "toy")
        client.delete_experiment(number)
    with pytest.raises(RunError, match=f"mlflow experiments restore --experiment-id {number}'"):
        bring(results, [make_spec()])
    study = SimpleNamespace(
        name="toy", title="", question="", metrics=(), folder=lambda results: results / "toy"
    )
    monkeypatch.setattr("benchmark.cli.study.load", lambda *_: study)
    monkeypatch.setattr("benchmark.study.grid.expand", lambda _: {})
    done = CliRunner().invoke(app, ["track", "import", "toy", "--results", str(results)])
    assert done.exit_code == 1 and "is deleted in MLflow" in done.stderr
    with connected(results) as client:
        client.restore_experiment(number)
    assert bring(results, [make_spec()]) == counts(present=1)


def test_importing_twice_brings_every_finished_run_once(results):
    specs = make_specs()
    for spec in list(specs.values())[:-1]:
        write_run(results, spec)
    assert bring(results, specs.values()) == counts(imported=7, unfinished=1)
    assert bring(results, specs.values()) == counts(present=7, unfinished=1)
    _, found = stored(results)
    assert sorted(run.data.tags["run_id"] for run in found) == sorted(list(specs)[:-1])


def test_an_imported_run_has_name_parameters_series_metrics_tags_and_artifacts(results):
    spec = make_spec("sup_ap", 128, 1, offset=None)
    write_run(results, spec)
    bring(results, [spec])
    client, (run,) = stored(results)
    assert run.info.run_name == "sup_ap bs128 seed1 (glyphs_tiny/resnet10t)"
    assert (run.info.status, run.info.user_id) == ("FINISHED", "benchmark")
    assert run.info.end_time - run.info.start_time == 11_000
    assert run.data.params == tracking.params(spec)
    assert {**run.data.params, "loss": "sup_ap", "optimizer.lr": "1e-05"} == run.data.params
    assert run.data.params["loss.offset"] == "None"
    assert run.data.metrics["recall_at_1"] == pytest.approx(0.76)
    assert run.data.metrics["best/recall_at_1"] == pytest.approx(0.71)
    assert run.data.metrics["cost/total_seconds"] == 11.0
    history = client.get_metric_history(run.info.run_id, "curve/recall_at_1")
    start = run.info.start_time
    assert [(each.step, each.timestamp - start, round(each.value, 2)) for each in history] == [
        (1, 2000, 0.56), (2, 4000, 0.61), (3, 6000, 0.66), (4, 8000, 0.71), (5, 10_000, 0.76)
    ]  # fmt: skip
    expected = {"study": "toy", "run_id": spec.run_id, "spec_digest": spec.digest, "status": "ok"}
    expected |= {"code_version": code_version(), "dataset_fingerprint": "f00d"}
    assert {**run.data.tags, **expected} == run.data.tags
    assert not any(name.startswith("verdict.") for name in run.data.tags)
    (folder,) = (results / "mlartifacts").glob(f"*/{run.info.run_id}/artifacts")
    names = ["metrics.jsonl", "provenance.json", "result.json", "spec.json"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert json.loads((folder / RESULT).read_text())["spec_digest"] == spec.digest
    assert json.loads((folder / SPEC).read_text())["dataset"]["params"]["root"] == "…/glyphs"
    texts = [path.read_text() for path in folder.iterdir()] + list(run.data.params.values())
    assert not any("/home" in text or "somebody" in text for text in texts)


def test_runs_are_found_by_their_dataset_and_its_content(results):
    spec = make_spec()
    write_run(results, spec)
    bring(results, [spec])
    _, (run,) = stored(results, "dataset.name = 'glyphs_tiny' and dataset.context = 'training'")
    (data,) = run.inputs.dataset_inputs
    assert (data.dataset.name, data.dataset.digest) == ("glyphs_tiny", "f00d")
    assert stored(results, "dataset.name = 'cub'")[1] == []


def test_a_run_has_the_commit_of_the_code_that_trained_it_and_of_no_other(results):
    ours, others = make_spec(seed=0), make_spec(seed=1)
    write_run(results, ours)
    write_run(results, others, code="0.0.1+old")
    bring(results, [ours, others])
    command = ["git", "-C", PACKAGE, "log", "-1", "--format=%H", "--", "."]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    _, found = stored(results, f"tags.run_id = '{ours.run_id}'")
    assert found[0].data.tags.get("mlflow.source.git.commit", "") == commit
    _, found = stored(results, f"tags.run_id = '{others.run_id}'")
    assert "mlflow.source.git.commit" not in found[0].data.tags


def test_the_verdicts_of_a_cell_are_tags_of_its_runs_once_there_are_verdicts(results):
    specs = [make_spec(seed=0), make_spec("sup_ap")]
    for spec in specs:
        write_run(results, spec)
    bring(results, specs)
    cell = "glyphs_tiny,resnet10t,smooth_ap,32"
    rows = ["dataset,setting,loss,batch_size,split,metric,verdict"]
    rows += [f"{cell},{each}" for each in ("test,map,drifted", "test,map,reproduced")]
    rows += [f"{cell},small,map,inconclusive", "cub,resnet50,,,test,map,not_run"]
    (results / "verdicts.csv").write_text("\n".join(rows))
    assert bring(results, specs, "verdicts.csv") == counts(present=2)
    _, (run,) = stored(results, "tags.`verdict.map` = 'drifted, reproduced'")
    assert run.data.tags["run_id"] == specs[0].run_id
    assert run.data.tags["verdict.small/map"] == "inconclusive"


def test_a_run_of_two_studies_appears_in_both_experiments(results):
    spec = make_spec()
    write_run(results, spec)
    for study in ("toy", "other"):
        assert bring(results, [spec], study=study) == counts(imported=1)
    assert [len(stored(results, study=study)[1]) for study in ("toy", "other")] == [1, 1]


def test_a_diverged_run_is_marked_and_has_no_headline_metric(results):
    spec = make_spec()
    write_run(results, spec, status="diverged")
    bring(results, [spec])
    _, (run,) = stored(results)
    assert run.info.status == "FAILED" and run.data.tags["status"] == "diverged"
    assert run.data.tags[NOTE] == "loss is nan at step 40"
    assert "recall_at_1" not in run.data.metrics and "curve/recall_at_1" in run.data.metrics


def test_an_import_cut_off_after_any_call_is_made_good_by_the_next(results, monkeypatch):
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    spec = make_spec()
    write_run(results, spec)
    calls = {"left": 0}
    names = ("create_run", "log_batch", "log_inputs", "set_terminated", "set_tag")

    def cut_off(name, original):
        def call(*args, **kwargs):
            if calls["left"] == 0:
                raise MlflowException(f"the server died before {name}")
            calls["left"] -= 1
            return original(*args, **kwargs)

        return call

    for name in names:
        monkeypatch.setattr(MlflowClient, name, cut_off(name, getattr(MlflowClient, name)))
    for allowed in range(6):
        calls["left"] = allowed
        with pytest.raises(RunError, match="the server died before"):
            bring(results, [spec])
    calls["left"] = 99
    assert bring(results, [spec]) == counts(imported=1)
    client, (run,) = stored(results)
    history = client.get_metric_history(run.info.run_id, "curve/loss")
    assert [point.step for point in history] == [1, 2, 3, 4, 5]


def test_a_run_trained_anew_or_by_other_code_replaces_the_one_before(results):
    old, new = make_spec(), make_spec(margin=0.5)
    write_run(results, old, code="0.0.1+old")
    bring(results, [old])
    write_run(results, old)
    assert bring(results, [old]) == counts(imported=1)
    assert bring(results, [new]) == counts(unfinished=1)
    write_run(results, new)
    assert bring(results, [new]) == counts(imported=1)
    assert bring(results, [new]) == counts(present=1)
    _, (run,) = stored(results)
    assert run.data.tags["spec_digest"] == new.digest


def test_values_that_are_not_finite_are_left_out_and_other_splits_carry_their_name(tmp_path):
    records = make_epochs(make_spec(), 2)
    write_epochs(
        tmp_path, [vary(records[0], loss=None), vary(records[1], evaluation={"s": {"m@1": 0.5}})]
    )
    names = [(each.key, each.step) for each in tracking.curves(tmp_path, 0.0)]
    assert ("curve/loss", 1) not in names and ("curve/loss", 2) in names
    assert ("curve/s/m_1", 2) in names, "MLflow refuses some letters"


def vary(record: EpochRecord, **changes: object) -> EpochRecord:
    return EpochRecord(**{**vars(record), **changes})


# Each process of its own would import MLflow, which takes most of the time.
FOUR_IMPORT = """
import os, sys, traceback
from pathlib import Path
import mlflow
from benchmark.runs.tracking import import_runs
results = Path(sys.argv[1])
for _ in range(4):
    if os.fork() == 0:
        status = 1
        try:
            import_runs("toy", "A toy", [], results, results / "none")
            status = 0
        except BaseException:
            traceback.print_exc()
        os._exit(status)
print(*(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(4)))
"""


def test_four_processes_at_once_make_one_sound_store_with_one_experiment(tmp_path):
    results = tmp_path / "results"
    command = [sys.executable, "-c", FOUR_IMPORT, results]
    done = subprocess.run(command, capture_output=True, text=True, timeout=480, check=False)
    assert done.stdout.split() == ["0"] * 4, done.stderr
    with sqlite3.connect(results / DATABASE) as database:
        assert database.execute("select name from experiments").fetchall() == [
            ("Default",),
            ("toy",),
        ]
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)


def test_the_store_names_no_folder_of_this_machine_and_describes_the_study(prepared):
    with sqlite3.connect(prepared / DATABASE) as database:
        places = database.execute("select artifact_location from experiments").fetchall()
        notes = database.execute("select value from experiment_tags").fetchall()
    assert places == [("mlflow-artifacts:/0",), ("mlflow-artifacts:/1",)]
    assert any(note.endswith("\n\nA toy") for (note,) in notes)
    assert str(prepared).encode() not in (prepared / DATABASE).read_bytes()


def test_a_store_that_was_not_finished_is_not_there(tmp_path, monkeypatch):
    from mlflow import MlflowClient

    def interrupted(self):
        Path(self.tracking_uri.removeprefix("sqlite:///")).write_bytes(b"SQLite format 3\0 half")
        raise KeyboardInterrupt

    monkeypatch.setattr(MlflowClient, "search_experiments", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bring(tmp_path, [])
    assert not (tmp_path / DATABASE).exists()


def test_a_store_of_an_older_mlflow_is_left_alone_and_the_command_that_upgrades_it_named(results):
    with sqlite3.connect(results / DATABASE) as database:
        database.execute("update alembic_version set version_num = '97727af70f4d'")
    with pytest.raises(RunError, match="mlflow db upgrade"):
        bring(results, [])


def test_a_refused_connection_is_reported_without_credentials(tmp_path, monkeypatch, closed_port):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://me:secret@127.0.0.1:{closed_port}")
    with pytest.raises(RunError, match=f"127.0.0.1:{closed_port} cannot be used") as caught:
        bring(tmp_path, [])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("server", ["hanging_server", "dripping_server"])
def test_a_server_that_never_answers_costs_a_bounded_time(tmp_path, monkeypatch, server, request):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", request.getfixturevalue(server))
    monkeypatch.setattr(tracking, "PATIENCE", 1)
    with pytest.raises(RunError, match="no answer for 1 s"):
        bring(tmp_path, [])


def test_the_users_own_settings_of_mlflow_are_kept(results, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "7")
    bring(results, [])
    assert os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "7"


@pytest.fixture
def study(monkeypatch):
    """A study called toy whose grid is two fabricated losses."""
    specs = make_specs()
    toy = SimpleNamespace(
        name="toy",
        title="A toy",
        question="Does it work?",
        metrics=["map"],
        folder=lambda results: results / "toy",
    )
    monkeypatch.setattr("benchmark.study.load_study", lambda name, results=None: toy)
    monkeypatch.setattr(
        "benchmark.study.grid.expand",
        lambda study: {name: SimpleNamespace(spec=spec) for name, spec in specs.items()},
    )
    return specs


def track(results, *words: str):
    return CliRunner().invoke(app, ["track", "import", "toy", "--results", str(results), *words])


def test_the_verb_says_what_it_did_and_describes_the_study(study, results):
    for spec in study.values():
        write_run(results, spec)
    (results / DATABASE).unlink()
    page = results / "toy" / "report" / "index.html"
    write_text(page, "the page")
    done = track(results)
    assert done.exit_code == 0, done.output
    assert "8 imported, 0 present, 0 unfinished" in done.output
    client, runs = stored(results)
    experiment = client.get_experiment_by_name("toy")
    view = f"#/experiments/{experiment.experiment_id}/runs?viewStateShareKey=columns"
    served = "/api/2.0/mlflow-artifacts/artifacts/reports/toy/index.html"
    links, *words = experiment.tags[NOTE].split("\n\n")
    assert links.startswith(f"[Report]({served}), [") and links.endswith(f"]({view})")
    assert words == ["**A toy**", "Does it work?"]
    assert {run.data.tags[NOTE] for run in runs} == {f"[Report of the study]({served})"}
    assert (results / "mlartifacts" / "reports" / "toy" / page.name).read_text() == "the page"
    assert f"http://127.0.0.1:5000/{view} (after 'make ui')" in done.output
    columns = json.loads(experiment.tags["mlflow.sharedViewState.columns"])["selectedColumns"]
    assert columns[:2] == ["params.`loss`", "params.`batch_size`"]
    assert columns[-1].startswith("metrics.`")


def test_a_note_that_somebody_wrote_is_kept(results):
    bring(results, [])
    client, _ = stored(results)
    client.set_experiment_tag(experiment_of(client, "toy"), NOTE, "ours")
    bring(results, [])
    assert client.get_experiment_by_name("toy").tags[NOTE] == "ours"


def test_without_a_server_there_is_a_warning_and_strict_makes_it_a_failure(
    study,
    tmp_path,
    monkeypatch,
    closed_port,
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{closed_port}")
    done = track(tmp_path)
    assert done.exit_code == 0
    assert (
        "warning: MLflow" in done.output and "python -m benchmark track import toy" in done.output
    )
    assert track(tmp_path, "--strict").exit_code == 1


SPEC_OF = make_spec()
QUICK_LOGGER = """
import sys
from pathlib import Path
from benchmark.runs import tracking

tracking.POLL = 0.2
tracking.follow(sys.argv[1], *map(Path, sys.argv[2:]))
"""


@pytest.fixture
def started(monkeypatch, tmp_path) -> list[subprocess.Popen]:
    """The processes that have been started to log runs, which look at these often."""
    found = []
    popen = subprocess.Popen

    def start(*args, **kwargs):
        found.append(popen(*args, **kwargs))
        return found[-1]

    monkeypatch.setattr(progress.subprocess, "Popen", start)
    monkeypatch.setattr(progress, "LOGGER", "quick_logger")
    monkeypatch.setattr(progress, "SOON", 0.2)
    (tmp_path / "quick_logger.py").write_text(QUICK_LOGGER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("BENCHMARK_STUDY", "toy")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    SPEC_OF.write(tmp_path / SPEC)
    return found


@pytest.mark.parametrize(
    ("uri", "study"),
    [(None, "toy"), ("sqlite:///somewhere.db", "toy"), ("http://127.0.0.1:9", None)],
    ids=["no variable", "local store", "no study"],
)
def test_without_a_server_and_a_study_nothing_is_started(
    tmp_path, monkeypatch, started, uri, study
):
    monkeypatch.delenv("BENCHMARK_STUDY")
    for name, value in (("MLFLOW_TRACKING_URI", uri), ("BENCHMARK_STUDY", study)):
        if value:
            monkeypatch.setenv(name, value)
    with logged_live(tmp_path / SPEC, tmp_path):
        assert started == []


def test_a_refused_connection_is_a_warning(tmp_path, monkeypatch, closed_port, started, capfd):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{closed_port}")
    monkeypatch.setattr(progress, "LOGGER", "benchmark.runs.tracking")
    with logged_live(tmp_path / SPEC, tmp_path):
        assert started[0].wait(90) == 0
    assert "the import brings this run in later" in capfd.readouterr().err


def test_a_server_that_never_answers_delays_no_run_and_its_process_ends_after_it(
    tmp_path,
    monkeypatch,
    hanging_server,
    started,
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", hanging_server)
    before = time.monotonic()
    with logged_live(tmp_path / SPEC, tmp_path):
        time.sleep(3)  # it asks the server by then, or imports still
    lasted = time.monotonic() - before
    assert lasted < 5, "a short run waits for 3 % of itself"
    started[0].wait(30)
    assert time.monotonic() - before - lasted > 4


def test_a_run_of_seconds_is_left_to_the_import(tmp_path, monkeypatch, hanging_server, started):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", hanging_server)
    monkeypatch.setattr(progress, "SOON", 60.0)
    monkeypatch.setattr(progress, "SMALL_SHARE", 1e6)
    with logged_live(tmp_path / SPEC, tmp_path):
        time.sleep(1)
        command = Path(f"/proc/{started[0].pid}/cmdline").read_bytes().split(b"\0")
        assert command[1] == b"-PS", "Python alone waits, which imports nothing"
    assert started[0].poll() == 0


def test_runs_reach_a_real_server_while_they_train_and_an_outage_is_made_good_once(
    tmp_path,
    monkeypatch,
    real_server,
    started,
):
    monkeypatch.setattr(progress, "SMALL_SHARE", 9.9)  # these runs take no time
    server = real_server(tmp_path / "server")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.start())
    results, (whole, cut, stopped) = tmp_path / "results", [make_spec(seed=n) for n in range(3)]

    def train(spec, action):
        folder = results / spec.folder
        spec.write(folder / SPEC)
        with logged_live(folder / SPEC, folder):
            write_epochs(folder, make_epochs(spec)[:2])
            wait_until(lambda: [epochs for _, epochs in logged(results, spec)] == [[1, 2]])
            action()

    train(whole, lambda: write_run(results, whole))
    assert logged(results, whole) == [("FINISHED", [1, 2, 3, 4, 5])]
    train(stopped, lambda: None)
    assert logged(results, stopped) == [("KILLED", [1, 2])]
    train(cut, lambda: (server.stop(), write_run(results, cut)))
    server.start()
    assert logged(results, cut) == [("RUNNING", [1, 2])]
    specs = [whole, cut, stopped]
    write_text(tmp_path / "report" / "index.html", "the page")
    for imported in (1, 0):
        expected = {"imported": imported, "present": 2 - imported, "unfinished": 1}
        found, view = import_runs("toy", "A toy", specs, results, tmp_path / "none")
        assert found == expected and view.startswith(f"{server.address}/#/experiments/")
        assert logged(results, cut) == [("FINISHED", [1, 2, 3, 4, 5])]
    with connected(results) as client:
        found = client.search_runs([experiment_of(client, "toy")], "dataset.name = 'glyphs_tiny'")
        assert [len(client.list_artifacts(run.info.run_id)) for run in found] == [4, 4]
    (address,) = {run.data.tags[NOTE].partition("](")[2].strip(")") for run in found}
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
