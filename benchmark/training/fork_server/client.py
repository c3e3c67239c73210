"""Asks the warm process for a run; says so when there is none, and then the caller trains by itself."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

from benchmark.training.fork_server.protocol import OFF, VARIABLE
from benchmark.training.interrupt import SIGNALS

STANDARD = (0, 1, 2)


def train_warm(spec: Path, out: Path | None, started: float) -> int | None:
    """Returns the exit status of the run, or None where no warm process took it or it died on the way.

    The run has this process's standard streams, folder and environment; SIGTERM, SIGINT and SIGHUP are passed on to
    it, and it ends when this process does.
    """
    path = os.environ.get(VARIABLE, OFF)
    if path == OFF or not hasattr(socket, "send_fds"):
        return None
    request = {
        "spec": str(spec),
        "out": None if out is None else str(out),
        "started": started,
        "folder": os.getcwd(),
        "environment": dict(os.environ),
    }
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            socket.send_fds(connection, [b"\0"], STANDARD)
            connection.sendall(json.dumps(request).encode() + b"\n")
            return _wait(connection)
    except OSError:
        return None


def _wait(connection: socket.socket) -> int | None:
    with connection.makefile("rb") as answers:
        answer = json.loads(answers.readline() or b"{}")
        if "pid" not in answer:
            return None
        with _passing_on(answer["pid"]):
            ended = json.loads(answers.readline() or b"{}")
    return ended.get("status")


@contextlib.contextmanager
def _passing_on(pid: int) -> Iterator[None]:
    def pass_on(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    previous = {number: signal.signal(number, pass_on) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
