"""``python -m benchmark conform``: its status, its text, its JSON and its errors."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner
from workplace import STUCK

from benchmark.__main__ import app
from benchmark.core.errors import ConfigError, RunError
from benchmark.losses.conformance.processes import SCALING
from benchmark.losses.conformance.suite import CHECKS

ROOT = Path(__file__).resolve().parents[4]

RIGHT = """
import torch

def smooth_ap(embeddings, labels):
    scores = embeddings @ embeddings.T
    targets = (labels.unsqueeze(1) == labels).to(scores.dtype)
    others = 1 - torch.eye(len(labels), dtype=scores.dtype)
    steps = torch.sigmoid((scores.unsqueeze(1) - scores.unsqueeze(2)) / TAU) * others
    ap = (1 + (steps * targets.unsqueeze(1)).sum(2)) / (1 + steps.sum(2)) * targets
    return 1 - (ap.sum(1) / targets.sum(1))[targets.sum(1) > 1].mean()

TAU = 0.01
"""


def conform(*arguments):
    return CliRunner().invoke(app, ["conform", "--no-processes", *map(str, arguments)])


def test_a_right_file_gives_status_0_and_a_table(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(RIGHT)
    done = conform(file, "--as", "smooth_ap")
    assert done.exit_code == 0, done.output
    assert "tau=0.01" in done.output
    assert re.search(r"\n\n\d+ passed, 1 not applicable\n$", done.output)


def test_a_wrong_file_gives_status_1_its_smallest_batch_and_json(tmp_path):
    file = tmp_path / "wrong.py"
    out = tmp_path / "out.json"
    file.write_text(RIGHT)
    done = conform(f"{file}:smooth_ap", "--as", "smooth_ap", "--option", "tau=0.05", "--json", out)
    assert done.exit_code == 1
    assert "labels = [" in done.output
    assert "\nin common: " in done.output
    written = json.loads(out.read_text())
    assert (written["passed"], written["options"]) == (False, {"tau": 0.05})
    wrong = written["checks"][0]
    assert wrong["result"] == "failed"
    assert len(wrong["case"]["labels"]) == len(wrong["case"]["embeddings"])


@pytest.mark.long
def test_a_neighbour_does_not_stand_in_for_a_module_of_python(tmp_path):
    (tmp_path / "mine.py").write_text(RIGHT)
    (tmp_path / "dataclasses.py").write_text("1 / 0\n")
    done = subprocess.run(
        [sys.executable, "-m", "benchmark", "conform", tmp_path / "mine.py", "--as", "smooth_ap"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_result_takes_the_place_of_no_program(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(RIGHT)
    done = conform(file, "--as", "smooth_ap", "--json", file)
    assert done.exit_code == 2
    assert file.read_text() == RIGHT


@pytest.mark.parametrize(
    ("content", "source", "message"),
    [
        (None, "{file}", "No such file"),
        ("1 / 0", "{file}", "ZeroDivisionError"),
        ("x = 1", "{file}", "functions and classes: none"),
        ("def a(e, y): ...\ndef b(e, y): ...", "{file}", "functions and classes: a, b"),
        ("x = 1", "{file}:y", "has no attribute 'y'"),
        ("x = 1", "{file}:x", "cannot be called"),
        ("class C:\n def __init__(self, n): ...", "{file}", "cannot be imported or made"),
        (None, "no_such_module_at_all:f", "cannot be imported"),
    ],
)
def test_what_is_no_loss_is_named_with_what_is_allowed(tmp_path, content, source, message):
    file = tmp_path / "mine.py"
    if content is not None:
        file.write_text(content)
    done = conform(source.format(file=file), "--as", "smooth_ap")
    assert isinstance(done.exception, ConfigError)
    with pytest.raises(ConfigError, match=message):
        raise done.exception


def test_options_that_only_the_loss_itself_refuses_are_refused_in_its_words(tmp_path, messages):
    file = tmp_path / "mine.py"
    file.write_text("def roadmap(e, y): return (e @ e.T).mean()")
    messages(conform(file, "--as", "roadmap", "--option", "weights=[1]").exception)


@pytest.mark.parametrize("option", ["tua=1", "tau", "tau=[a", "tau=2024-13-45", "tau=&a [*a]"])
def test_an_unknown_loss_or_option_is_named(tmp_path, option, messages):
    file = tmp_path / "mine.py"
    file.write_text(RIGHT)
    messages(conform(file, "--as", "smooth_app").exception)
    messages(conform(file, "--as", "smooth_ap", "--option", option).exception)


EXITS = {
    "at the end of the file": "import sys\ndef smooth_ap(e, y): return e.sum() * 0\nsys.exit(0)",
    "on import": "raise SystemExit",
    "in a constructor": "class C:\n def __init__(self): exit(0)\n def __call__(self, e, y): ...",
    "in a call": "import sys\ndef smooth_ap(e, y):\n sys.exit(0 if len(y) else 1)",
    "on one batch": RIGHT.replace(
        "scores =", "len(set(labels.tolist())) < 2 and exit(0)\n    scores ="
    ),
    "from a helper": "import ends_here\ndef smooth_ap(e, y): return ends_here.end()",
}


@pytest.mark.parametrize("content", EXITS.values(), ids=EXITS)
def test_a_candidate_that_ends_the_program_is_an_error_that_names_its_file(tmp_path, content):
    file = tmp_path / "mine.py"
    out = tmp_path / "out.json"
    file.write_text(content)
    (tmp_path / "ends_here.py").write_text("def end():\n import sys; sys.exit(0)")
    done = conform(file, "--as", "smooth_ap", "--json", out)
    with pytest.raises(RunError, match=r"(mine|ends_here)\.py, line \d+"):
        raise done.exception
    assert "passed\n" not in done.output.splitlines()[-1:]
    assert not out.exists()


@pytest.mark.long
def test_the_status_is_2_where_a_process_of_its_own_is_ended(tmp_path):
    file = tmp_path / "mine.py"
    ends = "torch.distributed.is_initialized() and exit(0)\n    scores ="
    file.write_text(RIGHT.replace("scores =", ends, 1))
    command = [sys.executable, "-m", "benchmark", "conform", file, "--as", "smooth_ap"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2, done.stdout + done.stderr
    assert f"error: {file}, line 5: it ended the program" in done.stderr


@pytest.mark.parametrize(
    ("returned", "named"),
    [
        ("e.sum(1)", r"a tensor of shape \(24,\)"),
        ("e @ e.T", r"a tensor of shape \(24, 24\)"),
        ("(e.sum(), None)", "a tuple"),
        ("float(e.sum())", "a float"),
        ("None", "a NoneType"),
        ("{'loss': e.sum()}", "a dict"),
    ],
)
def test_what_a_candidate_returns_in_place_of_a_number_is_named(tmp_path, returned, named):
    file = tmp_path / "mine.py"
    file.write_text(f"def smooth_ap(e, y): return {returned}")
    done = conform(file, "--as", "smooth_ap")
    assert done.exit_code == 1
    assert re.search(
        f"values, float32: six classes of four: returned {named}; a loss is one", done.output
    )


# What a candidate does at its first call: it writes its process and one that it started.
HANGING = """
import ctypes, os, subprocess, time

def smooth_ap(embeddings, labels):
    program = subprocess.Popen(["sleep", "1000"])
    with open("processes", "w") as file:
        file.write(f"{{os.getpid()}} {{program.pid}}")
    {what}
"""
LAST_ACTS = {
    "sleep": ("time.sleep(1000)", "no answer within 6 s"),
    "wait in C, with Python's lock": ("ctypes.PyDLL(None).pause()", "no answer within 6 s"),
    "crash": ("os.kill(os.getpid(), 9)", "it ended the process"),
    "leave": ("os._exit(0)", "it ended the process"),
}


def is_alive(process: str) -> bool:
    """Return whether a process runs, and is no zombie that waits for its parent."""
    try:
        state = Path("/proc", process, "stat").read_text()
    except FileNotFoundError:
        return False
    return state.rpartition(")")[2].split()[0] != "Z"


def have_ended(processes: str) -> bool:
    """Return whether these processes end: one that was killed may live on for a moment."""
    deadline = time.monotonic() + STUCK
    while any(map(is_alive, processes.split())) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(is_alive, processes.split()))


@pytest.mark.parametrize("act", LAST_ACTS)
def test_a_check_that_does_not_end_is_named_and_leaves_no_process(tmp_path, monkeypatch, act):
    monkeypatch.chdir(tmp_path)
    what, words = LAST_ACTS[act]
    Path("mine.py").write_text(HANGING.format(what=what))
    done = conform("mine.py", "--as", "smooth_ap", "--time-limit", 6, "--json", "out.json")
    assert done.exit_code == 1, done.output
    assert f"values, float64: {words}" in done.output
    assert "in common" not in done.output
    written = json.loads(Path("out.json").read_text())
    (check,) = written["checks"]
    assert (written["passed"], check["check"], check["result"]) == (False, CHECKS[0], "failed")
    assert have_ended(Path("processes").read_text())


def test_a_candidate_that_cannot_be_loaded_in_time_is_an_error(tmp_path):
    (tmp_path / "mine.py").write_text("import time; time.sleep(1000)")
    done = conform(tmp_path / "mine.py", "--as", "smooth_ap", "--time-limit", 1)
    assert isinstance(done.exception, RunError)
    assert "no answer within 1 s, while it was loaded" in str(done.exception)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_stop_leaves_no_process(tmp_path, number):
    (tmp_path / "mine.py").write_text(HANGING.format(what="time.sleep(1000)"))
    command = [sys.executable, "-m", "benchmark", "conform", "mine.py", "--as", "smooth_ap"]
    program = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    noted = tmp_path / "processes"
    while program.poll() is None and not (noted.exists() and len(noted.read_text().split()) == 2):
        time.sleep(0.1)
    program.send_signal(number)
    assert program.wait() != 0
    assert have_ended(noted.read_text())


def test_checks_come_in_the_order_that_names_the_one_that_hangs(tmp_path):
    (tmp_path / "mine.py").write_text(RIGHT)
    done = conform(tmp_path / "mine.py", "--as", "smooth_ap")
    names = re.findall(r"^  (.+?)  +(?:passed|failed|not applicable)", done.output, re.MULTILINE)
    assert [*names, SCALING] == [*CHECKS]


def test_one_long_error_of_every_check_is_printed_once(tmp_path):
    (tmp_path / "mine.py").write_text(
        "def loss(rows, labels):\n    raise MemoryError('x' * 10**6)\n"
    )
    done = conform(tmp_path / "mine.py", "--as", "smooth_ap")
    assert done.exit_code == 1
    assert done.output.count("as above") > 9
    assert len(done.output) < 6_000


STEP = """
def step(model, images, labels, loss):
    for part in range(0, len(images), 6):
        (loss(model(images[part : part + 6]), labels[part : part + 6]) / 4).backward()
"""


def test_a_step_that_takes_the_mean_over_parts_is_told_so(tmp_path):
    file = tmp_path / "step.py"
    out = tmp_path / "out.json"
    file.write_text(STEP)
    done = conform(file, "--step", "--json", out)
    assert done.exit_code == 1
    assert "with smooth_ap (include_query=True, tau=0.01)" in done.output
    assert "three classes of eight: the mean of the losses of 4 parts, not the" in done.output
    written = json.loads(out.read_text())
    assert written["reference"] == "smooth_ap"
    assert written["checks"][0]["note"].startswith("three classes of eight: the mean")


def test_a_step_is_tried_with_another_loss(tmp_path):
    file = tmp_path / "step.py"
    file.write_text("def step(model, images, labels, loss): loss(model(images), labels).backward()")
    done = conform(file, "--step", "--as", "pnp", "--option", "variant=O")
    assert done.exit_code == 0, done.output
    assert "with pnp (" in done.output and "variant=O" in done.output


@pytest.mark.parametrize("act", ["sleep", "leave"])
def test_a_step_that_does_not_end_is_named_and_leaves_no_process(tmp_path, monkeypatch, act):
    monkeypatch.chdir(tmp_path)
    what, words = LAST_ACTS[act]
    content = HANGING.format(what=what).replace("(embeddings, labels)", "(*batch)")
    Path("mine.py").write_text(content)
    done = conform("mine.py", "--step", "--time-limit", 6)
    assert done.exit_code == 1, done.output
    assert f"whole batch: {words}" in done.output
    assert have_ended(Path("processes").read_text())


def test_a_loss_without_a_formula_is_compared_with_itself(tmp_path):
    file = tmp_path / "mine.py"
    out = tmp_path / "out.json"
    file.write_text(RIGHT.replace("[targets.sum(1) > 1].mean()", ".sum()"))
    done = conform(file, "--json", out)
    assert done.exit_code == 0, done.output
    assert "as a loss without a formula" in done.output
    assert json.loads(out.read_text())["reference"] is None
    file.write_text(RIGHT)  # the mean over no query
    done = conform(file)
    assert done.exit_code == 1
    assert "no positives: eight classes of one: returned nan" in done.output


def test_options_need_the_loss_that_has_them(tmp_path, messages):
    messages(conform(tmp_path / "mine.py", "--option", "tau=0.05").exception)
