"""Ask the fork server to run a command; without one the caller does it by itself."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from benchmark.core.interrupts import handling_stop_signals
from benchmark.training.fork_server.protocol import (
    OFF,
    STEPS,
    THREADS,
    VARIABLE,
    Request,
    facts_at_start,
)

PATIENCE = 900.0  # seconds for a server that is importing, on the slowest of disks


def train_forked(spec: Path, out: Path | None, started: float) -> int | None:
    """Return the exit status of a run, or None where there is no server that takes it."""
    output = [] if out is None else ["--out", str(out)]
    return _forked(["train", "--spec", str(spec), *output, "--started", repr(started)])


def step_forked(arguments: Sequence[str]) -> int | None:
    """Return the exit status of a step, or None where it is none or no server takes it."""
    if arguments[:1] == [] or arguments[0] not in STEPS:
        return None
    for variable, number in THREADS.items():
        os.environ.setdefault(variable, number)
    return _forked(arguments)


def _forked(arguments: Sequence[str]) -> int | None:
    """Return the exit status of the command with these arguments, or None.

    The fork has this process's standard streams, folder and environment. It is told to stop when
    this process is, and ends when this process does. One that is killed has the status of SIGKILL.
    """
    path = os.environ.get(VARIABLE, OFF)
    if path == OFF or not hasattr(socket, "send_fds"):
        return None
    request = Request([*arguments], os.getcwd(), dict(os.environ), facts_at_start())
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(path)
            socket.send_fds(connection, [b"\0"], (0, 1, 2))
            connection.sendall(json.dumps(asdict(request)).encode() + b"\n")
            with connection.makefile("r") as answers:
                pid = json.loads(answers.readline() or "{}").get("pid")
                if pid is None:
                    return None
                connection.settimeout(None)
                return _wait(answers, pid)
    except (OSError, ValueError):
        return None


def _wait(answers: TextIO, pid: int) -> int:
    """Return the exit status of a fork, to which signals to stop are passed on."""

    def stop(*_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)

    with handling_stop_signals(stop), contextlib.suppress(OSError, ValueError):
        return json.loads(answers.readline())["status"]
    return 128 + signal.SIGKILL  # it ended without a word; this is what a shell reports
