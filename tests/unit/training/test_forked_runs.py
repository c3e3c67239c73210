"""Forked runs: same bits, same exit status, and nothing lost when either side dies."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from long_lists import long_but
from tiny_runs import curve, held, tiny_spec, train_command, wait_for, write_spec_in
from workplace import STUCK, small_study

from benchmark.core.environment import PORTABLE
from benchmark.core.interrupts import EXIT_INTERRUPTED
from benchmark.core.records import PROVENANCE, RESULT
from benchmark.core.results import Provenance
from benchmark.training.fork_server import THREADS, VARIABLE, ForkServer, train_forked
from benchmark.training.run import train

QUICK = {"epochs": 1}
LONG = {"epochs": 2, "checkpoint_seconds": 0.0}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the fork server needs Linux")


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    """Yield a server that commands with this process's variables find; it leaves no files."""
    before = os.environ.pop(VARIABLE, None)
    started = ForkServer()
    started.start()
    folder = Path(os.environ[VARIABLE]).parent
    process = started._process
    yield started
    started.stop()
    assert process.wait(STUCK) == 0
    assert not folder.exists()
    os.environ.pop(VARIABLE)
    if before is not None:
        os.environ[VARIABLE] = before


@pytest.fixture(scope="module")
def forking(server) -> dict[str, str]:
    """Return the environment in which commands find the server."""
    return dict(os.environ)


def run(spec: Path, environment: dict[str, str]) -> subprocess.CompletedProcess:
    return subprocess.run(
        train_command(spec), env=environment, capture_output=True, text=True, check=False
    )


def only_fork(server: ForkServer) -> int:
    """Return the id of the one process that the server has forked, once it has no other."""
    path = Path(f"/proc/{server._process.pid}/task/{server._process.pid}/children")
    wait_for(lambda: len(path.read_text().split()) == 1)
    return int(path.read_text())


def freeze(pid: int) -> None:
    """Stop a process, and wait until it stands still."""
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: fact(pid, "State") == "T")


def fact(pid: int, name: str) -> str:
    """Return what the system says of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return re.findall(rf"^{name}:\s+(\w+)", status, re.MULTILINE)[0]


def test_a_run_has_the_bits_and_the_output_of_one_started_by_itself(forking, tmp_path):
    spec = tiny_spec("smooth_ap", training=QUICK)
    train(write_spec_in(tmp_path / "alone", spec))
    done = run(write_spec_in(tmp_path / "forked", spec), forking)
    assert done.returncode == 0, done.stderr
    assert "epoch 1/1" in done.stdout + done.stderr
    assert (tmp_path / "forked" / RESULT).read_bytes() == (tmp_path / "alone" / RESULT).read_bytes()


@pytest.mark.long
def test_every_start_asks_for_portable_kernels(monkeypatch, tmp_path):
    for name in (*PORTABLE, VARIABLE):
        monkeypatch.delenv(name, raising=False)
    study = small_study("small", ["smooth_ap"]) | {"seeds": [0]}
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(study))
    fill = [sys.executable, "-m", "benchmark", "fill", "small.yaml", "--workers", "1"]
    subprocess.run(fill, check=True, cwd=tmp_path)
    spec = tiny_spec("smooth_ap", training=QUICK)
    assert run(write_spec_in(tmp_path / "alone", spec), dict(os.environ)).returncode == 0
    server = ForkServer()
    server.start()
    assert run(write_spec_in(tmp_path / "forked", spec), dict(os.environ)).returncode == 0
    server.stop()
    monkeypatch.delenv(VARIABLE)
    found = [Provenance.read(path).numerics.kernels for path in tmp_path.rglob(PROVENANCE)]
    assert found == 3 * ["portable AVX2"]


def test_a_failing_run_says_why_and_has_the_status_of_one_started_by_itself(forking, tmp_path):
    path = tmp_path / "spec.json"
    path.write_text("{}")
    done = run(path, forking)
    assert done.returncode == 2
    assert "cannot be read as a run specification" in done.stderr


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """Return the folder of a long run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    train(write_spec_in(folder, tiny_spec("smooth_ap", training=LONG)))
    return folder


@pytest.mark.parametrize(
    "kind", long_but([signal.SIGTERM], [signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
)
def test_a_signal_to_the_command_reaches_the_run_which_continues_later(
    kind, server, forking, whole, tmp_path
):
    stopped = tmp_path / "stopped"
    with held(stopped, tiny_spec("smooth_ap", training=LONG), forking) as (process, go_on):
        fork = only_fork(server)
        freeze(fork)  # the signal has to be there before the run goes on
        process.send_signal(kind)
        wait_for(lambda: int(fact(fork, "ShdPnd"), 16))
        go_on()
        os.kill(fork, signal.SIGCONT)
        assert process.wait(STUCK) == (-kind if kind == signal.SIGKILL else EXIT_INTERRUPTED)
    assert not (stopped / RESULT).exists()
    assert run(stopped / "spec.json", forking).returncode == 0
    assert (stopped / RESULT).read_bytes() == (whole / RESULT).read_bytes()
    assert curve(stopped) == curve(whole)


@pytest.fixture
def own_server(monkeypatch) -> Iterator[ForkServer]:
    """Yield a server of a test's own, which commands with this process's variables find."""
    monkeypatch.delenv(VARIABLE, raising=False)
    server = ForkServer()
    server.start()
    yield server
    server.stop()
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.mark.long
def test_a_killed_run_says_so_and_a_run_goes_on_when_the_server_dies(own_server, tmp_path):
    killed = tmp_path / "killed"
    spared = tmp_path / "spared"
    with held(killed, tiny_spec("smooth_ap", training=LONG)) as (process, _):
        os.kill(only_fork(own_server), signal.SIGKILL)
        assert process.wait(STUCK) == 128 + signal.SIGKILL
    assert not (killed / RESULT).exists()

    with held(spared, tiny_spec("smooth_ap", training=LONG)) as (process, go_on):
        own_server._process.kill()
        go_on()
        assert process.wait(STUCK) == 0
    assert (spared / RESULT).exists()
    # the next one starts by itself
    spec = write_spec_in(tmp_path / "next", tiny_spec("smooth_ap", training=QUICK))
    assert run(spec, os.environ).returncode == 0


def test_the_run_has_all_variables_of_its_command(server, forking, tmp_path):
    spec = write_spec_in(tmp_path, tiny_spec("smooth_ap", training=QUICK))
    done = run(spec, {**forking, "BENCHMARK_CACHE": str(tmp_path / "cache"), "PS1": "$ "})
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "cache").iterdir()), "glyphs are drawn where the command says"


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_with_other_threads_starts_by_itself(threads, server, forking, tmp_path):
    spec = tiny_spec("smooth_ap", training={**LONG, "threads": threads})
    forking = {name: value for name, value in forking.items() if name not in THREADS}
    with held(tmp_path, spec, forking) as (process, go_on):
        path = Path(f"/proc/{server._process.pid}/task/{server._process.pid}/children")
        assert len(path.read_text().split()) == (threads == 1)
        go_on()
        assert process.wait(STUCK) == 0


def test_clients_that_say_nothing_keep_no_other_waiting(forking, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
        silent.connect(forking[VARIABLE])
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as gone:
            gone.connect(forking[VARIABLE])
        done = run(write_spec_in(tmp_path, tiny_spec("smooth_ap", training=QUICK)), forking)
        assert done.returncode == 0, done.stderr


def test_without_a_server_the_caller_trains(tmp_path, monkeypatch):
    for name, number in THREADS.items():
        monkeypatch.setenv(name, number)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nothing here"))
    assert train_forked(0.0) is None
