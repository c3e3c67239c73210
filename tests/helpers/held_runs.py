"""Runs that wait at the end of their first epoch, for tests that end them on their way."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tiny_runs import write_spec_in
from workplace import STUCK

from benchmark.core.records import RunSpec
from benchmark.training.checkpoint import CHECKPOINT

FULL = 2**16  # bytes that a pipe takes


def train_command(spec: Path) -> list[str]:
    """Return the command that trains the run of a specification."""
    return [sys.executable, "-m", "benchmark", "train", "--spec", str(spec)]


@contextlib.contextmanager
def held(
    folder: Path, spec: RunSpec, environment: dict[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen, Callable[[], bytes]]]:
    """Yield a command that trains in ``folder``, once it has a checkpoint, and what lets it go on.

    It prints to a pipe that is full, so that it waits with the line of its first epoch.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, bytes(4096))
    os.set_blocking(writing, True)
    words = train_command(write_spec_in(folder, spec))
    process = subprocess.Popen(words, env=environment, stdout=writing)
    os.close(writing)
    try:
        wait_for((folder / CHECKPOINT).exists)
        yield process, lambda: os.read(reading, FULL)
    finally:
        process.kill()
        process.wait()
        os.close(reading)


def wait_for(condition: Callable[[], object]) -> None:
    """Return once a condition holds; fail after the time in which a program counts as stuck."""
    deadline = time.monotonic() + STUCK
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)
