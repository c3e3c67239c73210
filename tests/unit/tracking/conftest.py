"""Shared helpers of the tracking tests: this folder's fabricated runs, and servers that misbehave."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmark.tracking import store


@pytest.fixture(autouse=True)
def _no_tracking_variables(monkeypatch):
    """Tests start from a clean slate, and what MLflow's patience sets does not leak between them."""
    for name in ("MLFLOW_TRACKING_URI", "BENCHMARK_STUDY", "BENCHMARK_PLUGINS", "_MLFLOW_SERVER_ARTIFACT_ROOT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def closed_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def hanging_server():
    """The address of a server that accepts connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(50)
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


class LocalServer:
    """A real MLflow server on a free port, with its store in one folder, that can be stopped and started."""

    def __init__(self, folder: Path, port: int):
        self.folder, self.port, self.process = folder, port, None
        folder.mkdir(parents=True)

    def start(self) -> str:
        address = f"http://127.0.0.1:{self.port}"
        options = ["--host", "127.0.0.1", "--port", str(self.port), "--workers", "1"]
        command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", "sqlite:///server.db", *options]
        environment = store.server_environment(os.environ)
        environment.pop("MLFLOW_TRACKING_URI", None)
        with open(self.folder / "server.log", "a") as log:
            self.process = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + 90
        while store.unreachable(address):
            assert time.monotonic() < deadline, (self.folder / "server.log").read_text()
            time.sleep(0.3)
        return address

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture
def real_server(closed_port):
    """Returns a function that makes one LocalServer for a folder; it is stopped at the end."""
    servers = []

    def make(folder: Path) -> LocalServer:
        servers.append(LocalServer(folder, closed_port))
        return servers[-1]

    yield make
    for server in servers:
        server.stop()
