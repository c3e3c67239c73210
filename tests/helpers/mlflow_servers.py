"""MLflow servers for tests: real ones that are killed or silenced, and ones that never answer."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from made_up_records import make_spec

from benchmark.core.records import SPEC
from benchmark.training import progress

# What logs a run that lasts for seconds: it looks at it often.
QUICK_LOGGER = """
import sys
from pathlib import Path
from benchmark.runs import tracking

tracking.POLL = 0.2
tracking.follow(sys.argv[1], *map(Path, sys.argv[2:]))
"""
VARIABLES = (
    "MLFLOW_TRACKING_URI",
    "BENCHMARK_STUDY",
    "BENCHMARK_PLUGINS",
    "_MLFLOW_SERVER_ARTIFACT_ROOT",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES",
    "MLFLOW_DISABLE_TELEMETRY",
)


class LocalServer:
    """A real MLflow server on a port of its own, with its store in one folder, that can be stopped
    and started."""

    def __init__(self, folder: Path, port: int):
        self.folder = folder
        self.port = port
        self.process = None
        self.address = f"http://127.0.0.1:{port}"
        folder.mkdir(parents=True)

    def start(self) -> str:
        """Starts it and returns its address once it answers."""
        options = ["--host", "127.0.0.1", "--port", str(self.port), "--workers", "1"]
        store = ["--backend-store-uri", "sqlite:///server.db"]
        environment = {
            **os.environ,
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        }
        environment.pop("MLFLOW_TRACKING_URI", None)
        with open(self.folder / "server.log", "a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mlflow", "server", *store, *options],
                cwd=self.folder,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + 90
        while not answers(self.address):
            assert time.monotonic() < deadline, (self.folder / "server.log").read_text()
            time.sleep(0.3)
        return self.address

    def stop(self) -> None:
        """Kills it and its children, like a crash."""
        if self.process is not None and self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.process.wait()

    def silence(self) -> None:
        """Lets it accept connections and answer none, until ``speak``."""
        self.signal(signal.SIGSTOP)

    def speak(self) -> None:
        """Ends the silence."""
        self.signal(signal.SIGCONT)

    def signal(self, number: int) -> None:
        """Sends a signal to the server and its children."""
        os.killpg(self.process.pid, number)


def answers(address: str) -> bool:
    """Says whether a server of MLflow answers there."""
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=5):
            return True
    except OSError:
        return False


def free_port() -> int:
    """Returns a port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(autouse=True)
def clean_tracking(monkeypatch) -> None:
    """Tests start from a clean slate, and MLflow's settings do not leak between them."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def closed_port() -> int:
    """A port on which nothing listens."""
    return free_port()


@pytest.fixture
def hanging_server() -> Iterator[str]:
    """The address of a server that accepts connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(50)
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def dripping_server() -> Iterator[str]:
    """The address of a server that sends a byte of its answer now and then, and never the last."""

    def drip(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while True:
                connection.sendall(b" ")
                time.sleep(0.2)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=drip, args=server.accept()[:1], daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def real_server() -> Iterator[Callable[[Path], LocalServer]]:
    """Returns a function that makes a server for a folder; it is stopped at the end."""
    servers = []

    def make(folder: Path) -> LocalServer:
        servers.append(LocalServer(folder, free_port()))
        return servers[-1]

    yield make
    for server in servers:
        server.stop()


@pytest.fixture
def quick_logger(monkeypatch, tmp_path) -> list[subprocess.Popen]:
    """The processes started to log runs of the study toy, by ``QUICK_LOGGER``."""
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
    make_spec().write(tmp_path / SPEC)
    return found
