"""A loss that is changed after its challenge is not judged by the runs of the loss before."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from long_lists import long_but
from tiny_runs import in_a_fork

from benchmark.core.errors import ConfigError
from benchmark.core.registry import import_plugins
from benchmark.study.manifest import read_manifest
from benchmark.study.model import ROOT
from benchmark.study.own import Challenged, write_challenge

FIELD = ROOT / "results" / "reference" / "reality_check"
FORWARD = "def forward(x):\n    return x\n"


def glyphs() -> Challenged:
    """Return the field of glyphs, to challenge."""
    return Challenged(FIELD, read_manifest(FIELD))


@pytest.fixture
def challenged(tmp_path):
    """Return a loss's file, and a function that challenges with it, after one run of it."""
    loss = tmp_path / "mine.py"
    results = tmp_path / "results"
    loss.write_text(FORWARD)

    def challenge(folder=results):
        return write_challenge(loss, 1, glyphs(), folder)

    challenge()
    run = results / "runs" / "glyphs_1k.fold1" / "frozen~trial00" / "mine" / "bs64" / "seed0"
    run.mkdir(parents=True)
    (run / "result.json").write_text("{}")
    return loss, challenge


def test_a_changed_loss_is_refused_until_its_runs_are_gone(challenged, messages):
    loss, challenge = challenged
    loss.write_text(FORWARD.replace("return x", "return 0 * x"))
    with messages.raised():
        challenge()
    next((loss.parent / "results").rglob("result.json")).unlink()
    challenge()


def test_the_title_has_the_display_name(tmp_path):
    (tmp_path / "mine.py").write_text(LOSS)
    path = write_challenge(tmp_path / "mine.py", 1, glyphs(), tmp_path / "results")[0]
    study = yaml.safe_load(path.read_text())
    assert "Mine" in study["title"]
    assert "Mine" in study["question"]


def test_words_alone_may_change(challenged):
    loss, challenge = challenged
    loss.write_text('"""Mine."""\n' + FORWARD + "# as before\n")
    challenge()


def test_a_loss_without_runs_may_change(challenged, tmp_path):
    loss, challenge = challenged
    loss.write_text("x = 1\n")
    challenge(tmp_path / "elsewhere")


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


def test_a_loss_that_its_folder_has_registered_already_can_challenge(tmp_path, monkeypatch):
    """As after the tutorial, where BENCHMARK_PLUGINS is set; another file of that name cannot."""
    for folder in ("mine", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(LOSS)
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(tmp_path / "mine"))
    assert in_a_fork(error_of_challenge, tmp_path, "mine") == ""
    assert "other/mine.py" in in_a_fork(error_of_challenge, tmp_path, "other")


def error_of_challenge(folder: Path, name: str) -> str:
    """Return why the loss of a folder cannot challenge; "" if it can."""
    import_plugins()
    try:
        write_challenge(folder / name / "mine.py", 1, glyphs(), folder / "results")
    except ConfigError as error:
        return str(error)
    return ""


COMMAND = """
import sys
from benchmark.__main__ import main

sys.executable = sys.argv.pop(1)
sys.argv[0] = "benchmark"
main()
"""
# Like Snakemake, it takes a while to end, and further signals do not disturb it.
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
    workflow = tmp_path / "workflow"
    words = tmp_path / "words"
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
    long_but([(os.killpg, signal.SIGINT)], [(os.kill, signal.SIGTERM), (os.killpg, signal.SIGHUP)]),
)
def test_the_workflow_has_ended_when_the_challenge_has(send, number, challenge):
    process, words = challenge
    send(process.pid, number)
    assert process.wait() == 3, words.read_text()
    assert words.with_name("ended").exists()
    assert words.read_text() == ""
