"""What stops a challenge stops its workflow, which ends in good order before the command does."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from benchmark.study.model import ROOT

LOSS = """
from dataclasses import dataclass

from benchmark.losses import LOSSES
from benchmark.losses.base import Loss


@LOSSES.register("mine", display="Mine", paper="none", kind="pair", accepts_references=False)
class Mine(Loss):
    @dataclass(frozen=True, kw_only=True)
    class Config:
        pass
"""
COMMAND = """
import sys
from benchmark.__main__ import main

sys.executable = sys.argv.pop(1)
sys.argv[0] = "benchmark"
main()
"""
# Like Snakemake, it takes a while to end, and further signals do not disturb it. The catalogue of
# losses is made by a child as well.
WORKFLOW = """#!{python}
import os, signal, sys, time
from pathlib import Path

if "run" not in sys.argv:
    os.execv("{python}", ["{python}", *sys.argv[1:]])

def stop(number, _):
    signal.signal(number, signal.SIG_IGN)
    time.sleep(1)
    Path("ended").touch()
    sys.exit(3)

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, stop)
Path("started").touch()
while True:
    time.sleep(1)
"""


@pytest.fixture
def challenge(tmp_path):
    """Return a challenge whose workflow has started, and the file with its words."""
    (tmp_path / "mine.py").write_text(LOSS)
    workflow, words = tmp_path / "workflow", tmp_path / "words"
    workflow.write_text(WORKFLOW.format(python=sys.executable))
    workflow.chmod(0o755)
    with words.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, str(workflow), "challenge", "mine.py"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=stream,
            start_new_session=True,
        )
    while not (tmp_path / "started").exists():
        assert process.poll() is None, words.read_text()
        time.sleep(0.05)
    yield process, words
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("send", "number"),
    [(os.kill, signal.SIGTERM), (os.killpg, signal.SIGINT), (os.killpg, signal.SIGHUP)],
    ids=["terminated", "Ctrl-C", "a closed terminal"],
)
def test_the_workflow_has_ended_when_the_challenge_has(send, number, challenge):
    process, words = challenge
    send(process.pid, number)
    assert process.wait() == 3, words.read_text()
    assert words.with_name("ended").exists()
    assert words.read_text() == ""
