"""A run logs while it trains by a process of its own, which a bad server makes neither wait nor
outlive its run for long."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from made_up_records import make_epochs, make_spec, write_epochs, write_run
from mlflow_servers import clean_tracking, closed_port, hanging_server, real_server  # noqa: F401

from benchmark.core.records import SPEC
from benchmark.runs.tracking import connected, experiment_of, import_runs
from benchmark.training import progress
from benchmark.training.progress import logged_live

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


def test_a_refused_connection_is_a_warning(tmp_path, monkeypatch, closed_port, started, capfd):  # noqa: F811
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{closed_port}")
    monkeypatch.setattr(progress, "LOGGER", "benchmark.runs.tracking")
    with logged_live(tmp_path / SPEC, tmp_path):
        assert started[0].wait(90) == 0
    assert "the import brings this run in later" in capfd.readouterr().err


def test_a_server_that_never_answers_delays_no_run_and_its_process_ends_after_it(
    tmp_path,
    monkeypatch,
    hanging_server,  # noqa: F811
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


def test_a_run_of_seconds_is_left_to_the_import(tmp_path, monkeypatch, hanging_server, started):  # noqa: F811
    monkeypatch.setenv("MLFLOW_TRACKING_URI", hanging_server)
    monkeypatch.setattr(progress, "SOON", 60.0)
    monkeypatch.setattr(progress, "SMALL_SHARE", 1e6)
    with logged_live(tmp_path / SPEC, tmp_path):
        time.sleep(1)
        command = Path(f"/proc/{started[0].pid}/cmdline").read_bytes().split(b"\0")
        assert command[1] == b"-S", "Python alone waits, which imports nothing"
    assert started[0].poll() == 0


def test_runs_reach_a_real_server_while_they_train_and_an_outage_is_made_good_once(
    tmp_path,
    monkeypatch,
    real_server,  # noqa: F811
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
    for imported in (1, 0):
        expected = {"imported": imported, "present": 2 - imported, "unfinished": 1}
        assert import_runs("toy", "A toy", specs, results, tmp_path / "none") == expected
        assert logged(results, cut) == [("FINISHED", [1, 2, 3, 4, 5])]
    with connected(results) as client:
        found = client.search_runs([experiment_of(client, "toy")], "dataset.name = 'glyphs_tiny'")
        assert [len(client.list_artifacts(run.info.run_id)) for run in found] == [4, 4]


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
