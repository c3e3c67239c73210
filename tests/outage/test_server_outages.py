"""Real trainings beside a real MLflow server that is away, dies or hangs.

Each ends with the very result of a training without a server, and the later import brings it in
exactly once.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from mlflow_servers import LocalServer
from tiny_runs import tiny_spec, train_command, write_spec_in

from benchmark.core.records import RESULT, RunSpec
from benchmark.runs.tracking import connected, import_runs

pytestmark = pytest.mark.stress
EPOCHS = 90  # long enough to log some of them before the outage


class Training:
    """A training process of one specification, in a results folder of its own."""

    def __init__(self, results: Path, spec: RunSpec, **environment: str):
        self.folder = results / spec.folder
        command = train_command(write_spec_in(self.folder, spec))
        self.log = open(results / "train.log", "w+")  # noqa: SIM115
        streams = {"stdout": self.log, "stderr": subprocess.STDOUT}
        self.process = subprocess.Popen(command, env={**os.environ, **environment}, **streams)

    def result(self) -> bytes:
        """Wait for the end and return the bytes of the result."""
        try:
            status = self.process.wait(900)
        finally:
            self.process.kill()
        self.log.seek(0)
        text = self.log.read()
        self.log.close()
        assert status == 0, text
        return (self.folder / RESULT).read_bytes()


@pytest.fixture(scope="module")
def spec() -> RunSpec:
    return tiny_spec(training={"epochs": EPOCHS})


@pytest.fixture(scope="module")
def undisturbed(spec, tmp_path_factory) -> bytes:
    """The result of the same training without any server."""
    return Training(tmp_path_factory.mktemp("undisturbed"), spec).result()


@pytest.fixture
def logging(tmp_path, spec, monkeypatch):
    """Return a function that starts the training which logs to the given server."""

    def start(server: LocalServer) -> Training:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", server.address)
        return Training(tmp_path, spec, BENCHMARK_STUDY="toy")

    return start


def logged(server: LocalServer, results: Path, spec: RunSpec) -> dict[str, list[int]]:
    """Return {MLflow id: logged epochs} of every run of the specification on the server."""
    with connected(results) as client:
        study = client.get_experiment_by_name("toy")
        condition = f"tags.run_id = '{spec.run_id}'"
        runs = client.search_runs([study.experiment_id], condition) if study else []
        ids = [run.info.run_id for run in runs]
        points = {name: client.get_metric_history(name, "curve/loss") for name in ids}
    return {name: [point.step for point in points[name]] for name in ids}


def wait_for_epochs(server: LocalServer, training: Training, results: Path, spec: RunSpec) -> None:
    """Return once an epoch is on the server, which must be while the training goes on."""
    while not any(logged(server, results, spec).values()):
        assert training.process.poll() is None, "it ended before its first epoch was logged"
        time.sleep(0.3)
    assert training.process.poll() is None


def imported_once(server: LocalServer, results: Path, spec: RunSpec) -> None:
    """Import twice; the first makes one run of it, with every epoch once."""
    for imported in (1, 0):
        found = import_runs("toy", "A toy", [spec], results, results / "none")[0]
        assert found == {"imported": imported, "present": 1 - imported, "unfinished": 0}
    assert list(logged(server, results, spec).values()) == [list(range(1, EPOCHS + 1))]


@pytest.mark.parametrize("hangs", [False, True])
def test_a_server_that_is_absent_or_hangs_from_the_start(
    hangs, tmp_path, spec, undisturbed, real_server, logging
):
    server = real_server(tmp_path / "server")
    if hangs:
        server.start()
        server.silence()
    assert logging(server).result() == undisturbed
    (server.speak if hangs else server.start)()
    imported_once(server, tmp_path, spec)


@pytest.mark.parametrize(
    ("fails", "recovers"),
    [(LocalServer.stop, LocalServer.start), (LocalServer.silence, LocalServer.speak)],
    ids=["killed", "hanging"],
)
def test_a_server_that_fails_in_the_middle(
    fails, recovers, tmp_path, spec, undisturbed, real_server, logging
):
    server = real_server(tmp_path / "server")
    server.start()
    training = logging(server)
    wait_for_epochs(server, training, tmp_path, spec)
    fails(server)
    assert training.result() == undisturbed
    recovers(server)
    imported_once(server, tmp_path, spec)


def test_a_server_killed_between_epochs_that_is_back_before_the_end_has_the_run_once(
    tmp_path, spec, undisturbed, real_server, logging
):
    server = real_server(tmp_path / "server")
    server.start()
    training = logging(server)
    wait_for_epochs(server, training, tmp_path, spec)
    server.stop()
    server.start()
    assert training.process.poll() is None, "it ended before the server was back"
    assert training.result() == undisturbed
    # what sends the epochs may have outlived the outage, and then the run is whole already
    states = [import_runs("toy", "A toy", [spec], tmp_path, tmp_path / "none")[0] for _ in range(2)]
    assert [state["imported"] + state["present"] for state in states] == [1, 1]
    assert states[1]["present"] == 1
    assert list(logged(server, tmp_path, spec).values()) == [list(range(1, EPOCHS + 1))]
