"""Real trainings beside a real MLflow server that is away, dies or hangs.

Each ends with the very result of a training without a server, and the later import brings it in
exactly once.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mlflow_servers import LocalServer
from tiny_runs import tiny_spec, write_spec_in

from benchmark.core.records import RESULT, RunSpec
from benchmark.runs.tracking import store
from benchmark.runs.tracking.importer import Counts, import_runs

pytestmark = pytest.mark.stress
EPOCHS = 90  # long enough for the mirror to send some of them before the outage


class Training:
    """A training process of one specification, in a results folder of its own."""

    def __init__(self, results: Path, spec: RunSpec, **environment: str):
        self.folder = results / spec.folder
        path = write_spec_in(self.folder, spec)
        command = [sys.executable, "-m", "benchmark", "train", "--spec", str(path)]
        self.log = open(results / "train.log", "w+")  # noqa: SIM115
        everything = {**os.environ, **environment}
        self.process = subprocess.Popen(
            command, env=everything, stdout=self.log, stderr=subprocess.STDOUT
        )

    def result(self) -> bytes:
        """Waits for the end and returns the bytes of the result."""
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
def mirrored(tmp_path, spec, monkeypatch):
    """Returns a function that starts the training with a mirror to the given server."""

    def start(server: LocalServer) -> Training:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", server.address)
        return Training(tmp_path, spec, BENCHMARK_STUDY="toy")

    return start


def logged(server: LocalServer, results: Path, spec: RunSpec) -> dict[str, list[int]]:
    """Returns {MLflow id: logged epochs} of every run of the specification on the server."""
    client = store.connect(results)
    experiment = client.get_experiment_by_name("toy")
    runs = (
        client.search_runs([experiment.experiment_id], f"tags.run_id = '{spec.run_id}'")
        if experiment
        else []
    )
    ids = [run.info.run_id for run in runs]
    return {
        name: [point.step for point in client.get_metric_history(name, "curve/loss")]
        for name in ids
    }


def wait_for_epochs(server: LocalServer, training: Training, results: Path, spec: RunSpec) -> None:
    """Returns once the mirror has sent an epoch, which must be while the training goes on."""
    while not any(logged(server, results, spec).values()):
        assert training.process.poll() is None, (
            "the training ended before its first epoch was mirrored"
        )
        time.sleep(0.3)
    assert training.process.poll() is None


def imported_once(server: LocalServer, results: Path, spec: RunSpec) -> Counts:
    """Imports twice; returns what the first did, after counting one run with every epoch once."""
    specs = {spec.run_id: spec}
    first = import_runs("toy", "A toy", specs, results)
    assert import_runs("toy", "A toy", specs, results) == Counts(present=1)
    assert list(logged(server, results, spec).values()) == [list(range(1, EPOCHS + 1))]
    return first


def test_a_server_that_is_absent_from_the_start(tmp_path, spec, undisturbed, real_server, mirrored):
    server = real_server(tmp_path / "server")
    assert mirrored(server).result() == undisturbed
    server.start()
    assert imported_once(server, tmp_path, spec) == Counts(imported=1)


def test_a_server_that_hangs_from_the_start(tmp_path, spec, undisturbed, real_server, mirrored):
    server = real_server(tmp_path / "server")
    server.start()
    server.silence()
    assert mirrored(server).result() == undisturbed
    server.speak()
    assert imported_once(server, tmp_path, spec) == Counts(imported=1)


@pytest.mark.parametrize(
    ("fails", "recovers"),
    [(LocalServer.stop, LocalServer.start), (LocalServer.silence, LocalServer.speak)],
    ids=["killed", "hanging"],
)
def test_a_server_that_fails_in_the_middle(
    fails, recovers, tmp_path, spec, undisturbed, real_server, mirrored
):
    server = real_server(tmp_path / "server")
    server.start()
    training = mirrored(server)
    wait_for_epochs(server, training, tmp_path, spec)
    fails(server)
    assert training.result() == undisturbed
    recovers(server)
    assert imported_once(server, tmp_path, spec) == Counts(completed=1)
