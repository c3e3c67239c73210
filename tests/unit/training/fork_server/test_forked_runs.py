"""Forked runs and steps: same bits, same exit status, and nothing lost when either side dies."""

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
from held_runs import held, train_command, wait_for
from tiny_runs import curve, tiny_spec, write_spec_in
from workplace import STUCK, small_study

from benchmark.core.records import RESULT
from benchmark.training.fork_server.client import step_forked, train_forked
from benchmark.training.fork_server.protocol import READ_AT_START, VARIABLE
from benchmark.training.fork_server.starter import ForkServer
from benchmark.training.interrupt import EXIT_INTERRUPTED
from benchmark.training.run import train

QUICK = {"epochs": 1}
LONG = {"epochs": 5, "checkpoint_seconds": 0.0}
BY_ITSELF = "started by itself, not forked"

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the fork server needs Linux")


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    """Yield a server that commands with this process's variables find."""
    before = os.environ.pop(VARIABLE, None)
    started = ForkServer()
    started.start()
    yield started
    started.stop()
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


def test_a_server_that_says_nothing_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmark.training.fork_server.client.PATIENCE", 0.1)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "socket"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        assert train_forked(tmp_path / "spec.json", None, 0.0) is None


def test_a_run_has_the_bits_and_the_output_of_one_started_by_itself(forking, tmp_path):
    spec = tiny_spec("smooth_ap", training=QUICK)
    train(write_spec_in(tmp_path / "alone", spec))
    done = run(write_spec_in(tmp_path / "forked", spec), forking)
    assert done.returncode == 0, done.stderr
    assert "epoch 1/1" in done.stdout + done.stderr
    assert BY_ITSELF not in done.stderr
    assert (tmp_path / "forked" / RESULT).read_bytes() == (tmp_path / "alone" / RESULT).read_bytes()


def test_a_failing_run_says_why_and_has_the_status_of_one_started_by_itself(forking, tmp_path):
    path = tmp_path / "spec.json"
    path.write_text("{}")
    done = run(path, forking)
    assert done.returncode == 2
    assert "is not a run specification" in done.stderr


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """Return the folder of a long run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    train(write_spec_in(folder, tiny_spec("smooth_ap", training=LONG)))
    return folder


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
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


def test_a_killed_run_says_so_and_a_run_goes_on_when_the_server_dies(own_server, tmp_path):
    killed, spared = tmp_path / "killed", tmp_path / "spared"
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


class TestVariables:
    def test_those_of_a_shell_or_a_folder_do_not_matter(self, forking, tmp_path):
        spec = write_spec_in(tmp_path, tiny_spec("smooth_ap", training=QUICK))
        others = {"PS1": "(venv) $ ", "VIRTUAL_ENV": "/somewhere", "COLUMNS": "7", "PWD": "/"}
        done = run(spec, {**forking, **others})
        assert done.returncode == 0 and BY_ITSELF not in done.stderr, done.stderr

    def test_those_read_at_the_start_do_and_each_is_named(self, forking, tmp_path):
        names = ["CUDA_VISIBLE_DEVICES", "HF_HOME", "OMP_NUM_THREADS"]
        spec = write_spec_in(tmp_path, tiny_spec("smooth_ap", training=QUICK))
        done = run(spec, {**forking, **dict.fromkeys(names, "3")})
        assert done.returncode == 0
        assert f"{BY_ITSELF}, because these differ: {', '.join(names)}" in done.stderr

    def test_the_run_has_all_variables_of_its_command(self, forking, tmp_path):
        spec = write_spec_in(tmp_path, tiny_spec("smooth_ap", training=QUICK))
        done = run(spec, {**forking, "BENCHMARK_CACHE": str(tmp_path / "cache")})
        assert done.returncode == 0 and BY_ITSELF not in done.stderr, done.stderr
        assert list((tmp_path / "cache").iterdir()), "glyphs are drawn where the command says"

    def test_each_has_a_reason(self):
        assert all(reason for reason in READ_AT_START.values())


def talk(path: str, *parts: bytes, streams: bool = True) -> bytes:
    """Return what a server answers to a client that says these things and then nothing."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(path)
        if streams:
            socket.send_fds(connection, [b"\0"], [1, 1, 2])
        for part in parts:
            connection.sendall(part)
        connection.shutdown(socket.SHUT_WR)
        try:
            return connection.recv(1000)
        except ConnectionResetError:
            return b""


@pytest.mark.parametrize(
    "parts",
    [
        (b"",),
        (b"nonsense\n",),
        (b"{}\n",),
        (b"[1, 2]\n",),
        (b'{"arguments": 1, "folder": 3, "environment": 4, "at_start": 5}\n',),
        (b"\xff" * 100_000,),
    ],
)
def test_a_request_that_is_none_gets_no_run_and_leaves_the_server_alone(parts, forking, tmp_path):
    assert b"pid" not in talk(forking[VARIABLE], *parts)
    assert b"pid" not in talk(forking[VARIABLE], *parts, streams=False)
    done = run(write_spec_in(tmp_path, tiny_spec("smooth_ap", training=QUICK)), forking)
    assert done.returncode == 0 and BY_ITSELF not in done.stderr


def test_a_client_that_says_nothing_keeps_no_other_waiting(forking, tmp_path):
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(forking[VARIABLE])
        done = run(write_spec_in(tmp_path, tiny_spec("smooth_ap", training=QUICK)), forking)
        assert done.returncode == 0 and BY_ITSELF not in done.stderr
        silent.settimeout(0.1)
        with pytest.raises(TimeoutError):  # it is still waited for
            silent.recv(1)


def test_code_that_changed_since_the_server_started_is_not_forked(tmp_path, monkeypatch, request):
    plugin = tmp_path / "plugins" / "nothing.py"
    plugin.parent.mkdir()
    plugin.write_text("VALUE = 1\n")
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(plugin.parent))
    request.getfixturevalue("own_server")
    spec = tiny_spec("smooth_ap", training=QUICK)
    first = run(write_spec_in(tmp_path / "first", spec), os.environ)
    assert first.returncode == 0 and BY_ITSELF not in first.stderr
    os.utime(plugin, (1, 1))
    second = run(write_spec_in(tmp_path / "second", spec), os.environ)
    assert second.returncode == 0
    assert f"{BY_ITSELF}, because these differ: code" in second.stderr


def listens(path: str) -> bool:
    """Say whether a socket takes connections; its file is there a moment before."""
    lines = Path("/proc/net/unix").read_text().splitlines()
    return any(line.endswith(path) and " 00010000 " in line for line in lines)


def test_a_step_has_the_files_the_output_and_the_status_of_one_started_by_itself(
    tmp_path, monkeypatch, capfd
):
    study = tmp_path / "small.yaml"
    study.write_text(yaml.safe_dump(small_study("small", ["smooth_ap"])))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    (server := ForkServer()).start(runs=False)
    wait_for(lambda: listens(os.environ[VARIABLE]))
    try:
        for results, words in (("forked", ["collect"]), ("missing", ["build"])):
            arguments = [*words, study.name, "--results", results]
            status = step_forked(arguments)
            forked = capfd.readouterr()
            alone = {**os.environ, VARIABLE: "off"}
            program = [sys.executable, "-m", "benchmark", *arguments]
            if words == ["collect"]:
                assert status == 0, forked
                (tmp_path / "forked").rename(tmp_path / "first")
            done = subprocess.run(program, env=alone, capture_output=True, text=True)
            assert (status, *forked) == (done.returncode, done.stdout, done.stderr)
        assert status == 2 and "runs.csv" in forked.err
        for name in ("runs.csv", "scores.csv", "provenance.json"):
            first, second = (tmp_path / each / "small" / name for each in ("first", "forked"))
            assert first.read_bytes() == second.read_bytes()
        assert step_forked(["validate", study.name]) is None, "it is no step"
        assert "torch" not in Path(f"/proc/{server._process.pid}/maps").read_text()
    finally:
        server.stop()
        monkeypatch.delenv(VARIABLE)


def test_without_a_server_the_caller_trains(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nothing here"))
    assert train_forked(tmp_path / "spec.json", None, 0.0) is None
    assert step_forked(["collect"]) is None


def test_a_long_temporary_folder_is_no_place_for_a_socket_and_stopping_leaves_no_files(
    tmp_path, monkeypatch, request
):
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    server = request.getfixturevalue("own_server")
    assert len(os.environ[VARIABLE]) <= 107
    done = run(write_spec_in(tmp_path, tiny_spec("smooth_ap", training=QUICK)), os.environ)
    assert done.returncode == 0 and BY_ITSELF not in done.stderr
    folder, process = Path(os.environ[VARIABLE]).parent, server._process
    server.stop()
    assert process.wait(STUCK) == 0
    assert not folder.exists()
