"""Runs forked from a warm process: same bits, same exit status, and nothing lost when either side dies."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_runs import curve, tiny_spec, write_spec_in

from benchmark.core.records import RESULT
from benchmark.training.checkpoint import CHECKPOINT
from benchmark.training.fork_server.client import train_warm
from benchmark.training.fork_server.protocol import VARIABLE
from benchmark.training.fork_server.starter import WarmStarter
from benchmark.training.interrupt import EXIT_INTERRUPTED
from benchmark.training.run import train

QUICK = {"epochs": 1}
LONG = {"epochs": 5, "checkpoint_seconds": 0.0}


@pytest.fixture(scope="module")
def warm() -> Iterator[dict[str, str]]:
    """Returns the environment in which commands find a warm process."""
    before = os.environ.pop(VARIABLE, None)
    starter = WarmStarter()
    starter.start()
    yield dict(os.environ)
    starter.stop()
    os.environ.pop(VARIABLE)
    if before is not None:
        os.environ[VARIABLE] = before


def command(spec: Path) -> list[str]:
    return [sys.executable, "-m", "benchmark", "train", "--spec", str(spec)]


def servers() -> list[int]:
    """Returns the processes that serve warm starts and have this process as parent."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return [
        int(pid)
        for pid in children
        if b"benchmark.training.fork_server.server" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


def start_until_checkpoint(folder: Path, spec, environment: dict[str, str]) -> subprocess.Popen:
    process = subprocess.Popen(
        command(write_spec_in(folder, spec)), env=environment, stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while not (folder / CHECKPOINT).exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return process


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="warm starts need Linux")
class TestWarmStart:
    def test_run_has_the_bits_and_the_output_of_a_cold_one(self, warm, tmp_path):
        spec = tiny_spec("smooth_ap", training=QUICK)
        train(write_spec_in(tmp_path / "cold", spec))
        path = write_spec_in(tmp_path / "warm", spec)
        done = subprocess.run(command(path), env=warm, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "epoch 1/1" in done.stdout + done.stderr
        assert (tmp_path / "warm" / RESULT).read_bytes() == (
            tmp_path / "cold" / RESULT
        ).read_bytes()

    def test_failing_run_says_why_and_has_the_status_of_a_cold_one(self, warm, tmp_path):
        path = tmp_path / "spec.json"
        path.write_text("{}")
        done = subprocess.run(command(path), env=warm, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "is not a run specification" in done.stderr

    @pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGKILL])
    def test_signal_to_the_command_reaches_the_run_which_continues_later(
        self, kind, warm, tmp_path
    ):
        spec = tiny_spec("smooth_ap", training=LONG)
        whole, killed = tmp_path / "whole", tmp_path / "killed"
        train(write_spec_in(whole, spec))
        process = start_until_checkpoint(killed, spec, warm)
        process.send_signal(kind)
        assert process.wait(30) == (EXIT_INTERRUPTED if kind == signal.SIGTERM else -kind)
        assert not (killed / RESULT).exists()
        assert (
            subprocess.run(
                process.args, env=warm, stdout=subprocess.DEVNULL, check=False
            ).returncode
            == 0
        )
        assert (killed / RESULT).read_bytes() == (whole / RESULT).read_bytes()
        assert curve(killed) == curve(whole)

    def test_run_with_other_variables_starts_by_itself(self, warm, tmp_path, monkeypatch):
        spec = write_spec_in(tmp_path, tiny_spec("smooth_ap", training=QUICK))
        monkeypatch.setenv("SOME_LIBRARY_MODE", "other")
        assert train_warm(spec, None, 0.0) is None
        assert not (tmp_path / RESULT).exists()

    def test_run_goes_on_by_itself_when_the_warm_process_dies(
        self, warm, tmp_path
    ):  # last: it ends the fixture's
        process = start_until_checkpoint(tmp_path, tiny_spec("smooth_ap", training=LONG), warm)
        for pid in servers():
            os.kill(pid, signal.SIGKILL)
        assert process.wait(60) == 0
        assert (tmp_path / RESULT).exists()


def test_without_a_warm_process_the_caller_trains(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nothing here"))
    assert train_warm(tmp_path / "spec.json", None, 0.0) is None


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="warm starts need Linux")
def test_stopping_ends_the_process_and_leaves_no_files(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    before = set(servers())
    starter = WarmStarter()
    starter.start()
    folder = Path(os.environ[VARIABLE]).parent
    deadline = time.monotonic() + 10
    while not set(servers()) - before and time.monotonic() < deadline:
        time.sleep(0.01)  # between its fork and its exec it has this process's command line
    (pid,) = set(servers()) - before
    starter.stop()
    os.environ.pop(VARIABLE, None)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
    assert not folder.exists()
