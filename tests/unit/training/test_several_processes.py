"""A run in several processes as a command: killed, stopped, continued by one, wrong only once."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_runs import tiny_spec, write_spec_in
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.errors import RunError
from benchmark.core.records import RESULT
from benchmark.core.results import Result
from benchmark.training import processes
from benchmark.training.checkpoint import CHECKPOINT
from benchmark.training.interrupt import EXIT_INTERRUPTED
from benchmark.training.launch import EXIT_SILENT, FIRST_ERROR, LAUNCHER, launch, status_of
from benchmark.training.run import train

FROZEN = {"freeze_batch_norm": True}
OFTEN = {"epochs": 1, "checkpoint_seconds": 0.0}
SECONDS = 240


def start(spec: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "benchmark", "train", "--spec", str(spec), "--gpus", "2"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, **pipes)


def workers(parent: int) -> list[int]:
    """Return the process ids of the processes that train."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(parent)], capture_output=True, text=True
    )
    return [int(row.split()[0]) for row in listed.stdout.splitlines() if " train --spec " in row]


def wait_for(path: Path, process: subprocess.Popen) -> None:
    """Wait until the file is there; fail where the process ends before."""
    limit = time.monotonic() + SECONDS
    while not path.exists():
        assert process.poll() is None and time.monotonic() < limit, process.communicate()
        time.sleep(0.01)


def test_a_run_survives_a_kill_and_a_stop_and_goes_on_in_one_process(tmp_path):
    alone, together = tmp_path / "alone", tmp_path / "together"
    for folder in (alone, together):
        folder.mkdir()
        path = write_spec_in(folder, tiny_spec("roadmap", model=FROZEN, training=OFTEN))
    train(alone / "spec.json")

    killed = start(path)
    wait_for(together / CHECKPOINT, killed)
    os.kill(workers(killed.pid)[1], signal.SIGKILL)
    said, errors = killed.communicate(timeout=SECONDS)
    assert killed.returncode == 128 + signal.SIGKILL
    assert "one of 2 processes" in said and "Traceback" not in errors
    assert not (together / RESULT).exists()

    left = (together / CHECKPOINT).stat().st_mtime_ns
    stopped = start(path)
    while (together / CHECKPOINT).stat().st_mtime_ns == left and stopped.poll() is None:
        time.sleep(0.01)
    stopped.send_signal(signal.SIGTERM)
    said, errors = stopped.communicate(timeout=SECONDS)
    assert stopped.returncode == EXIT_INTERRUPTED, (said, errors)
    assert said.count("continuing at epoch 1") == said.count("stopped on request") == 1
    assert not errors

    train(path)
    results = [Result.read(folder / RESULT) for folder in (alone, together)]
    assert results[0].batch_stream == results[1].batch_stream
    assert results[0].steps == results[1].steps
    losses = [result.curve[0].loss for result in results]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def test_what_is_wrong_is_said_once(tmp_path):
    process = start(write_spec_in(tmp_path, tiny_spec()))
    said, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 2 and not said, (said, errors)
    assert errors.count("model.freeze_batch_norm: true") == 1 and errors.count("error:") == 1
    assert "Traceback" not in errors


def test_the_process_that_says_why_is_not_ended_before_it_has(tmp_path):
    code = """
import os, signal
from benchmark.core.errors import RunError
from benchmark.training.launch import take_part

class Late(RunError):
    def __str__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        return "what is wrong"

def train():
    raise Late()

raise SystemExit(take_part(train))
"""
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, FIRST_ERROR: str(tmp_path / "first-error")},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 2, ended.stderr
    assert "what is wrong" in ended.stderr


@pytest.fixture
def launched(monkeypatch) -> Iterator[list[int]]:
    """Yield the numbers of processes that would have been started; none is."""
    from torch.distributed.launcher import api

    asked: list[int] = []

    class Recorded:
        def __init__(self, config, entry):
            asked.append(config.nproc_per_node)

        def __call__(self, *arguments):
            """Start nothing."""

    monkeypatch.setattr(api, "elastic_launch", Recorded)
    monkeypatch.setenv(FIRST_ERROR, "")
    monkeypatch.setenv(LAUNCHER, "")
    yield asked
    logging.disable(logging.NOTSET)  # which a launcher does, in a process of its own


@pytest.mark.parametrize("cores", [1, 2])
def test_a_machine_without_gpus_starts_few_processes_however_many_are_asked(
    launched, monkeypatch, cores
):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(processes, "available_cores", lambda: cores)
    with pytest.raises(RunError, match=r"3000 processes .* give at most --gpus 8"):
        launch(["train"], 3000)
    assert launched == []
    assert launch(["train"], 4) == 0 and launched == [4]


def test_a_large_machine_without_gpus_may_have_a_process_for_each_core(launched, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(processes, "available_cores", lambda: 64)
    assert launch(["train"], 64) == 0 and launched == [64]


def test_no_process_is_started_for_a_file_that_is_no_specification(launched, tmp_path):
    (tmp_path / "spec.json").write_text("study: x\n")
    command = ["train", "--spec", str(tmp_path / "spec.json"), "--gpus", "2"]
    refusal = CliRunner().invoke(app, command).exception
    assert isinstance(refusal, RunError) and "spec.json" in str(refusal)
    assert launched == []


def test_a_process_whose_launcher_is_gone_before_it_starts_trains_nothing():
    code = """
from benchmark.training.launch import take_part
raise SystemExit(take_part(lambda: print("trains") or 0))
"""
    for launcher, status in ((os.getpid(), 0), (os.getppid(), -signal.SIGTERM)):
        ended = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, LAUNCHER: str(launcher)},
            capture_output=True,
            text=True,
        )
        assert ended.returncode == status, ended.stderr
        assert ended.stdout == ("" if status else "trains\n")


@pytest.mark.parametrize(
    ("codes", "status"),
    [
        ([-signal.SIGTERM, EXIT_INTERRUPTED], EXIT_INTERRUPTED),
        ([EXIT_SILENT, -signal.SIGKILL, -signal.SIGTERM], 137),
        ([EXIT_SILENT, 2], 2),
        ([-signal.SIGTERM, EXIT_SILENT], EXIT_SILENT),
    ],
)
def test_the_status_is_that_of_the_process_that_failed_first(codes, status):
    assert status_of(codes) == status
