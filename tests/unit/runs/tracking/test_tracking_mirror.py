from __future__ import annotations

import signal
import time
from pathlib import Path

import fabricated
import pytest
from fabricated import make_epochs, make_spec, write_epochs, write_run

from benchmark.runs.tracking import store
from benchmark.training import progress
from benchmark.training.progress import CLOSING_SHARE, Mirror

HELPERS = Path(fabricated.__file__).parent


def patience(helper, monkeypatch) -> list[float]:
    """Return the seconds that each wait for the helper may last, from now on."""
    allowed, wait = [], helper.wait

    def note(timeout=None):
        if timeout is not None:
            allowed.append(timeout)
        return wait(timeout)

    monkeypatch.setattr(helper, "wait", note)
    return allowed


@pytest.mark.parametrize(
    ("uri", "study"),
    [(None, "toy"), ("sqlite:///somewhere.db", "toy"), ("http://127.0.0.1:9", None)],
    ids=["no variable", "local store", "no study"],
)
def test_without_a_server_and_a_study_there_is_no_mirror(tmp_path, monkeypatch, uri, study):
    for name, value in (("MLFLOW_TRACKING_URI", uri), ("BENCHMARK_STUDY", study)):
        if value:
            monkeypatch.setenv(name, value)
    with Mirror.start(make_spec(), tmp_path) as mirror:
        assert mirror._process is None


def test_a_refused_connection_ends_the_helper_which_closing_does_not_kill(
    tmp_path, monkeypatch, closed_port, capfd
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{closed_port}")
    monkeypatch.setenv("BENCHMARK_STUDY", "toy")
    mirror = Mirror.start(make_spec(), tmp_path)
    helper = mirror._process
    assert helper.wait(60) == 1
    mirror.close()
    assert helper.returncode == 1
    assert "training goes on, the import brings this run in later" in capfd.readouterr().err


def test_a_server_that_never_answers_delays_start_and_end_by_seconds_at_most(
    tmp_path, monkeypatch, hanging_server
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", hanging_server)
    monkeypatch.setenv("BENCHMARK_STUDY", "toy")
    mirror = Mirror.start(make_spec(), tmp_path)
    helper = mirror._process
    assert helper.poll() is None, "the start waited for the helper"
    mirror._started -= 1e6  # a long training
    allowed = patience(helper, monkeypatch)
    monkeypatch.setattr(progress, "CLOSING_SECONDS", 0.2)
    mirror.close()
    assert allowed == [0.2]
    assert helper.returncode == -signal.SIGKILL
    mirror.close()  # twice is harmless


def test_a_helper_that_cannot_be_started_does_not_stop_training(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("BENCHMARK_STUDY", "toy")
    monkeypatch.setattr("sys.executable", str(tmp_path / "no-such-python"))
    with Mirror.start(make_spec(), tmp_path):
        pass
    assert "no live mirror" in capsys.readouterr().err


def test_the_end_of_a_short_run_waits_for_a_small_part_of_it_only(
    tmp_path, monkeypatch, hanging_server
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", hanging_server)
    monkeypatch.setenv("BENCHMARK_STUDY", "toy")
    mirror = Mirror.start(make_spec(), tmp_path)
    mirror._started -= 10.0  # the training took ten seconds
    allowed = patience(mirror._process, monkeypatch)
    mirror.close()
    lasted = time.monotonic() - mirror._started
    assert len(allowed) == 1 and 10 * CLOSING_SHARE <= allowed[0] <= lasted * CLOSING_SHARE


@pytest.mark.slow
def test_runs_reach_a_real_server_while_they_train_and_an_outage_is_made_good_once(
    tmp_path, monkeypatch, real_server
):
    from benchmark.runs.tracking.importer import Counts, import_runs

    monkeypatch.setattr(
        progress, "CLOSING_SHARE", 9.9
    )  # these runs take no time, so no share of it
    monkeypatch.setattr(progress, "CLOSING_SECONDS", 60.0)
    monkeypatch.setattr(progress, "HELPER", "impatient_mirror")
    monkeypatch.setenv("PYTHONPATH", str(HELPERS))
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    server = real_server(tmp_path / "server")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.start())
    monkeypatch.setenv("BENCHMARK_STUDY", "toy")
    results = tmp_path / "results"
    store.prepare("toy", "A toy", results)
    whole, cut = make_spec(seed=0), make_spec(seed=1)

    with Mirror.start(whole, results / whole.folder) as mirror:
        write_epochs(results / whole.folder, make_epochs(whole)[:2])
        wait_until(lambda: epochs_of(results, whole) == [1, 2])
        write_run(results, whole)
        helper = mirror._process
    assert helper.returncode == 0

    with Mirror.start(cut, results / cut.folder):
        write_epochs(results / cut.folder, make_epochs(cut)[:2])
        wait_until(lambda: epochs_of(results, cut) == [1, 2])
        server.stop()
        write_run(results, cut)

    server.start()
    specs = {spec.run_id: spec for spec in (whole, cut)}
    assert import_runs("toy", "A toy", specs, results) == Counts(present=1, completed=1)
    assert import_runs("toy", "A toy", specs, results) == Counts(present=2)
    assert epochs_of(results, whole) == epochs_of(results, cut) == [1, 2, 3, 4, 5]
    client = store.connect(results)
    found = client.search_runs([client.get_experiment_by_name("toy").experiment_id])
    assert sorted(len(client.list_artifacts(run.info.run_id)) for run in found) == [4, 4]
    assert {run.info.status for run in found} == {"FINISHED"}


def epochs_of(results, spec) -> list[int]:
    client = store.connect(results)
    experiment = client.get_experiment_by_name("toy").experiment_id
    runs = client.search_runs([experiment], filter_string=f"tags.run_id = '{spec.run_id}'")
    return [
        point.step
        for run in runs
        for point in client.get_metric_history(run.info.run_id, "curve/loss")
    ]


def wait_until(condition, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the server never showed it"
        time.sleep(0.3)
