"""Ctrl-C at random moments of a smoke run: each ends soon, and the same command goes on."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmark.study import load_study
from benchmark.study.grid import expand

pytestmark = pytest.mark.stress
INTERRUPTS = int(os.environ.get("STRESS_KILLS", "20"))
# seconds: of the moment, and until the call has ended
LATEST = 20.0
PATIENCE = 10.0
MOST = 3  # runs that finish before a moment that is counted from them


def start(results: Path) -> subprocess.Popen[bytes]:
    """Start the smoke study as a shell does: in a group of processes of its own."""
    command = [sys.executable, "-m", "benchmark", "run", "smoke", "--cores", "2"]
    log = open(results.parent / "log.txt", "ab")  # noqa: SIM115
    return subprocess.Popen(
        [*command, "--results", str(results)],
        cwd=results.parent,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )


def finished(results: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in results.glob("runs/**/result.json")}


def wait(process: subprocess.Popen[bytes], results: Path, moments: random.Random) -> None:
    """Wait for a moment of the start, or for one after some runs; until the call ends at most."""
    more = moments.choice([0, moments.randint(1, MOST)])
    runs = len(finished(results)) + more
    while process.poll() is None and len(finished(results)) < runs:
        time.sleep(0.02)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(moments.uniform(0.2, 2.0 if more else LATEST))


def test_each_ctrl_c_ends_soon_and_the_same_command_goes_on(tmp_path: Path):
    moments = random.Random(34)
    results = tmp_path / "results"
    kept = {}
    done = 0
    while done < INTERRUPTS:
        process = start(results)
        wait(process, results, moments)
        if process.poll() is not None:
            assert process.returncode == 0, (tmp_path / "log.txt").read_text()[-4000:]
            # the study is done: begin another
            results = tmp_path / f"results{done}"
            kept = {}
            continue
        os.killpg(process.pid, signal.SIGINT)
        begin = time.monotonic()
        try:
            process.wait(PATIENCE)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        print(f"{done}: {len(finished(results))} runs, {time.monotonic() - begin:.1f} s")
        now = finished(results)
        assert {path: now.get(path) for path in kept} == kept, "no result is lost"
        kept = now
        done = done + 1
    assert start(results).wait(900) == 0, (tmp_path / "log.txt").read_text()[-4000:]
    assert len(finished(results)) == len(expand(load_study("smoke")))
    assert (results / "smoke" / "report" / "index.html").is_file()
