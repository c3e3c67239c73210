"""MLflow servers for tests: real ones that can be killed, silenced or left without disk, and one
that never answers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmark.runs.tracking import patience, serving

VARIABLES = (
    "MLFLOW_TRACKING_URI",
    "BENCHMARK_STUDY",
    "BENCHMARK_PLUGINS",
    "_MLFLOW_SERVER_ARTIFACT_ROOT",
)


class LocalServer:
    """A real MLflow server on a port of its own, with its store in one folder, that can be stopped
    and started."""

    def __init__(self, folder: Path, port: int):
        self.folder, self.port, self.process = folder, port, None
        self.address = f"http://127.0.0.1:{port}"
        folder.mkdir(parents=True)

    def command(self) -> list[str]:
        """Returns the server's command line; it runs in its folder."""
        options = ["--host", "127.0.0.1", "--port", str(self.port), "--workers", "1"]
        return [
            sys.executable,
            "-m",
            "mlflow",
            "server",
            "--backend-store-uri",
            "sqlite:///server.db",
            *options,
        ]

    def start(self) -> str:
        """Starts it and returns its address once it answers."""
        environment = serving.server_environment(os.environ)
        environment.pop("MLFLOW_TRACKING_URI", None)
        with open(self.folder / "server.log", "a") as log:
            self.process = subprocess.Popen(
                self.command(),
                cwd=self.folder,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + 90
        while patience.unreachable(self.address):
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


class SmallDiskServer(LocalServer):
    """A real server whose store lies on a disk of a few megabytes, which only the server and this
    object see."""

    MEGABYTES = 16

    def command(self) -> list[str]:
        """Returns the command line that mounts the disk in a namespace of its own and serves from
        there."""
        mount = f'mount -t tmpfs -o size={self.MEGABYTES}m none disk && cd disk && exec "$@"'
        return [
            "unshare",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            mount,
            "sh",
            *super().command(),
        ]

    def start(self) -> str:
        """Starts it on a new, empty disk."""
        (self.folder / "disk").mkdir(exist_ok=True)
        return super().start()

    @property
    def filler(self) -> Path:
        """Returns the path, seen from outside, of the file that fills the disk."""
        inside = (self.folder / "disk" / "filler").resolve()
        return Path(f"/proc/{self.process.pid}/root") / inside.relative_to("/")

    def fill(self) -> None:
        """Leaves no byte free."""
        with open(self.filler, "wb", buffering=0) as stream:
            for block in (bytes(65536), bytes(1024), b"\0"):
                try:
                    while True:
                        stream.write(block)
                except OSError:
                    pass

    def free(self) -> None:
        """Makes room again."""
        self.filler.unlink()


def can_mount() -> bool:
    """Says whether this user may mount a small disk for a process of its own."""
    command = ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def free_port() -> int:
    """Returns a port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(autouse=True)
def clean_tracking(monkeypatch) -> None:
    """Tests start from a clean slate, and what MLflow's patience sets does not leak between
    them."""
    for name in (*VARIABLES, *patience.PATIENCE):
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
def real_server() -> Iterator[Callable[[Path], LocalServer]]:
    """Returns a function that makes a server (or one of a given kind) for a folder; it is stopped
    at the end."""
    servers = []

    def make(folder: Path, kind: type[LocalServer] = LocalServer) -> LocalServer:
        servers.append(kind(folder, free_port()))
        return servers[-1]

    yield make
    for server in servers:
        server.stop()
