"""``fill``: one run that breaks leaves a word in its log and does not stop the others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import yaml
from typer.testing import CliRunner
from workplace import small_study

from benchmark.__main__ import app
from benchmark.cli import running as train
from benchmark.cli.running import _train_quietly
from benchmark.core.errors import RunError
from benchmark.training import run


@pytest.mark.parametrize(
    ("error", "told", "logged"),
    [
        (RunError("no room"), "no room", "error: no room"),
        (ZeroDivisionError("of a plugin"), "ZeroDivisionError: of a plugin", "Traceback"),
    ],
)
def test_any_error_of_a_run_is_its_own(error, told, logged, tmp_path, monkeypatch):
    def broken(spec):
        raise error

    monkeypatch.setattr(run, "train", broken)
    assert _train_quietly(tmp_path / "spec.json") == told
    assert logged in (tmp_path / "train.log").read_text()


def test_a_killed_process_is_one_message(tmp_path, monkeypatch):
    def killed(*_):
        raise BrokenProcessPool("a process was terminated abruptly")

    pool = nullcontext(SimpleNamespace(map=killed))
    monkeypatch.setattr(train, "ProcessPoolExecutor", lambda *_: pool)
    study = tmp_path / "own.yaml"
    study.write_text(yaml.safe_dump(small_study("own", ["sup_ap"])))
    done = CliRunner().invoke(app, ["fill", str(study), "--results", str(tmp_path / "results")])
    assert done.exit_code == 1, done.exception
    assert "a process was killed" in done.output


def test_failed_runs_are_counted_as_such(tmp_path, monkeypatch):
    pool = nullcontext(SimpleNamespace(map=lambda _, specs: ["no room" for _ in specs]))
    monkeypatch.setattr(train, "ProcessPoolExecutor", lambda *_: pool)
    study = tmp_path / "own.yaml"
    study.write_text(yaml.safe_dump(small_study("own", ["sup_ap"])))
    done = CliRunner().invoke(app, ["fill", str(study), "--results", str(tmp_path / "results")])
    assert done.exit_code == 1, done.exception
    assert done.output.splitlines()[-1].startswith("0 of ")
    assert " runs finished, " in done.output and done.output.rstrip().endswith(" failed")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_stop_ends_the_pool_in_good_order(number, tmp_path, monkeypatch):
    ended = []

    class Pool:
        def map(self, *_):
            yield ""
            os.kill(os.getpid(), number)
            time.sleep(60)

        def shutdown(self, cancel_futures):
            ended.append(cancel_futures)

    monkeypatch.setattr(train, "ProcessPoolExecutor", lambda *_: nullcontext(Pool()))
    study = tmp_path / "own.yaml"
    study.write_text(yaml.safe_dump(small_study("own", ["sup_ap"])))
    done = CliRunner().invoke(app, ["fill", str(study), "--results", str(tmp_path / "results")])
    assert done.exit_code == 1 and ended == [True], done.exception
    assert "finished runs are kept" in done.output


WORKER = """
import os, sys, time
from multiprocessing import get_context
from benchmark.cli.running import _leave_signals_to_the_parent

def work():
    _leave_signals_to_the_parent(os.getppid())
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(600)

if __name__ == "__main__":
    get_context("fork").Process(target=work).start()
    time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells a process of its parent")
def test_the_processes_of_a_killed_fill_end():
    command = [sys.executable, "-c", WORKER]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        worker = int(parent.stdout.readline())
        parent.kill()
        try:
            parent.communicate(timeout=60)  # ends when no process holds the other end
        except subprocess.TimeoutExpired:
            os.kill(worker, signal.SIGKILL)
            pytest.fail("the worker has outlived its parent")
