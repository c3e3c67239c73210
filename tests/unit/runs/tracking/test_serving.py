"""The page of MLflow: what it needs, and that Ctrl-C ends it without a word of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time

import pytest
from mlflow_servers import clean_tracking, free_port  # noqa: F401

from benchmark.runs.tracking import serving, store
from benchmark.runs.tracking.store import TrackingError
from benchmark.study.format import ROOT

SERVE = """
import os, sys
from benchmark.runs.tracking.serving import serve

sys.exit(serve(sys.argv[1:], os.environ))
"""
# Like MLflow, it has a child, and says much when it is interrupted.
SERVER = """
import signal, subprocess, sys, time

if sys.argv[1] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
print(child.pid, flush=True)
time.sleep(100)
"""


def test_the_ui_binds_to_loopback_and_needs_a_store(tmp_path):
    with pytest.raises(TrackingError, match=r"mlflow\.db does not exist; run a study"):
        serving.server_command(tmp_path, 5000)
    (tmp_path / store.DATABASE).touch()
    command = serving.server_command(tmp_path, free_port())
    assert command[command.index("--host") + 1] == "127.0.0.1"


def test_a_taken_port_is_a_clear_error(tmp_path):
    (tmp_path / store.DATABASE).touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TrackingError, match="choose another with --port"):
            serving.server_command(tmp_path, port)


def cut(path):
    os.truncate(path, 60_000)


def no_database(path):
    path.write_bytes(b"x" * 9000)


def without_a_table(path):
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("drop table experiment_tags")


@pytest.mark.parametrize("damage", [cut, no_database, without_a_table])
def test_a_damaged_store_is_one_message_before_a_server_is_started(tmp_path, damage):
    store.prepare("toy", "A toy", tmp_path)
    damage(tmp_path / store.DATABASE)
    with pytest.raises(TrackingError, match=r"mlflow\.db cannot be used .*delete the file"):
        serving.server_command(tmp_path, free_port())


@pytest.fixture
def served(tmp_path, request):
    """Return a process that serves, its server's child, and the file with all their words."""
    words = tmp_path / "words"
    server = [sys.executable, "-c", SERVER, getattr(request, "param", "polite")]
    with words.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVE, *server],
            cwd=ROOT,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    deadline = time.monotonic() + 60
    while not words.read_text().endswith("\n"):
        assert process.poll() is None and time.monotonic() < deadline, words.read_text()
        time.sleep(0.02)
    yield process, int(words.read_text()), words
    for number in (process.pid, int(words.read_text().split()[0])):
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_stops_the_page_ends_its_server_and_says_nothing(served, number):
    process, child, words = served
    os.killpg(process.pid, number)  # as a terminal does
    assert process.wait(20) == 0
    assert words.read_text() == f"{child}\n"
    require_end(child)


@pytest.mark.parametrize("served", ["deaf"], indirect=True)
def test_a_second_interrupt_kills_a_server_that_does_not_end(served):
    process, child, _ = served
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    assert process.wait(3) == 0
    require_end(child)


def test_a_signal_that_comes_while_the_server_starts_ends_it(tmp_path, monkeypatch):
    started = []

    def start(*arguments, **options):
        started.append(popen(*arguments, **options))
        os.kill(os.getpid(), signal.SIGTERM)
        return started[0]

    popen = subprocess.Popen
    monkeypatch.setattr(serving.subprocess, "Popen", start)
    assert serving.serve([sys.executable, "-c", "import time; time.sleep(100)"], os.environ) == 0
    assert started[0].poll() is not None


def test_the_status_of_a_server_that_fails_is_told():
    assert serving.serve([sys.executable, "-c", "raise SystemExit(3)"], os.environ) == 3


def require_end(number):
    deadline = time.monotonic() + 10
    while os.path.exists(f"/proc/{number}") and "Z" not in state_of(number):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def state_of(number):
    with contextlib.suppress(OSError), open(f"/proc/{number}/stat") as stream:
        return stream.read().rsplit(")", 1)[1].split()[0]
    return "Z"
