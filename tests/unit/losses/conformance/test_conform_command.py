"""``python -m benchmark conform``: its status, its text, its JSON and its errors."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
import torch
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.errors import ConfigError, RunError
from benchmark.losses.conformance import execution

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
    assert done.output.rstrip().endswith("passed")


def test_a_wrong_file_gives_status_1_its_smallest_batch_and_json(tmp_path):
    file, out = tmp_path / "wrong.py", tmp_path / "out.json"
    file.write_text(RIGHT)
    done = conform(f"{file}:smooth_ap", "--as", "smooth_ap", "--option", "tau=0.05", "--json", out)
    assert done.exit_code == 1
    assert "labels = [" in done.output
    written = json.loads(out.read_text())
    assert (written["passed"], written["options"]) == (False, {"tau": 0.05})
    wrong = written["checks"][0]
    assert wrong["result"] == "failed"
    assert len(wrong["case"]["labels"]) == len(wrong["case"]["embeddings"])


LOOP = "while True:\n    pass\n"


@pytest.mark.parametrize(
    "text", [LOOP, RIGHT.replace("    scores =", "    while True: pass\n    scores =")]
)
def test_an_implementation_that_loops_is_given_up(tmp_path, monkeypatch, text):
    monkeypatch.setattr("benchmark.cli.conform.LONGEST", 0.5)
    file = tmp_path / "mine.py"
    file.write_text(text)
    done = conform(file, "--as", "smooth_ap")
    assert isinstance(done.exception, RunError)
    assert re.search(
        r"mine.py takes more than 0 s to check, line \d; does it loop", str(done.exception)
    )


def test_an_implementation_that_changes_the_working_directory_is_refused(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(f"import os\nos.chdir('/')\n{RIGHT}")
    done = conform(file, "--as", "smooth_ap")
    assert isinstance(done.exception, ConfigError)
    assert "sets the whole program's working directory to /" in str(done.exception)
    assert os.getcwd() != "/"


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
    assert done.exit_code == 2 and "is a program; choose another place" in done.output
    assert file.read_text() == RIGHT


@pytest.mark.parametrize(
    ("content", "source", "message"),
    [
        (None, "{file}", "no such file"),
        ("1 / 0", "{file}", "ZeroDivisionError"),
        ("x = 1", "{file}", "functions and classes: none"),
        ("def a(e, y): ...\ndef b(e, y): ...", "{file}", "functions and classes: a, b"),
        ("x = 1", "{file}:y", "has no 'y'"),
        ("x = 1", "{file}:x", "cannot be called"),
        ("def f(e): ...", "{file}", r"cannot be called with \(embeddings, labels\)"),
        ("class C:\n def __init__(self, n): ...", "{file}", "cannot be made without arguments"),
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
    assert "allowed: " in str(done.exception)


def test_options_that_only_the_loss_itself_refuses_are_refused_in_its_words(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def roadmap(e, y): return (e @ e.T).mean()")
    done = conform(file, "--as", "roadmap", "--option", "weights=[1]")
    with pytest.raises(ConfigError, match="two numbers, of SupAP and of calibration"):
        raise done.exception


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--as", "smooth_app"), "did you mean 'smooth_ap'"),
        (("--as", "smooth_ap", "--option", "tua=1"), "did you mean 'tau'"),
        (("--as", "smooth_ap", "--option", "tau"), "KEY=VALUE"),
        (("--as", "smooth_ap", "--option", "tau=[a"), "KEY=VALUE"),
        (("--as", "smooth_ap", "--option", "tau=2024-13-45"), "tau"),
        (("--as", "smooth_ap", "--option", f"tau={'9' * 5000}"), "more than 400 digits"),
        (("--as", "smooth_ap", "--option", f"tau={'[' * 5000}"), "levels of nesting"),
        (("--as", "smooth_ap", "--option", "tau=&a [*a]"), "contains itself"),
    ],
)
def test_an_unknown_loss_or_option_is_named(tmp_path, arguments, message):
    file = tmp_path / "mine.py"
    file.write_text(RIGHT)
    done = conform(file, *arguments)
    assert isinstance(done.exception, ConfigError)
    assert message in str(done.exception)


@pytest.mark.parametrize(
    "content",
    [
        "import sys\nsys.exit()",
        "raise GeneratorExit",
        "class End(BaseException): ...\nraise End",
        "class smooth_ap:\n def __init__(self): raise SystemExit",
        "def smooth_ap(e, y): raise SystemExit",
    ],
)
def test_a_file_that_ends_the_program_is_named(tmp_path, content):
    file = tmp_path / "mine.py"
    file.write_text(content)
    done = conform(file, "--as", "smooth_ap")
    assert isinstance(done.exception, RunError)
    assert "mine.py ended the program" in str(done.exception)


@pytest.mark.parametrize("content", ["{}", "def smooth_ap(e, y):\n {}"])
def test_an_interruption_says_who_may_have_asked_for_it(tmp_path, content):
    file = tmp_path / "mine.py"
    file.write_text(content.format("raise KeyboardInterrupt"))
    done = conform(file, "--as", "smooth_ap")
    assert done.exit_code == 130
    assert "by Ctrl-C, or by the implementation itself" in done.output


def test_an_error_without_words_and_an_odd_signature_are_reported(tmp_path):
    file = tmp_path / "mine.py"
    silent = "class E(Exception):\n def __str__(self): raise ValueError\n"
    file.write_text(f"{silent}raise E")
    with pytest.raises(ConfigError, match="cannot be imported: E: without words"):
        raise conform(file, "--as", "smooth_ap").exception
    odd = " @property\n def __signature__(self): raise E\n def __call__(self, e, y): raise E\n"
    file.write_text(f"{silent}class Odd:\n{odd}smooth_ap = Odd()")
    done = conform(f"{file}:smooth_ap", "--as", "smooth_ap")
    assert done.exit_code == 1
    assert "raised E: without words" in done.output


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("torch.set_default_device('meta')", "default device to meta"),
        ("torch.set_default_dtype(torch.float64)", "default dtype to torch.float64"),
        ("torch.set_grad_enabled(False)", "gradients to off"),
    ],
)
def test_a_loss_that_changes_torch_for_everybody_is_refused(tmp_path, setting, message):
    file = tmp_path / "mine.py"
    file.write_text(f"{RIGHT}\n{setting}\n")
    with pytest.raises(ConfigError, match=message):
        raise conform(file, "--as", "smooth_ap").exception
    file.write_text(f"import torch\ndef smooth_ap(e, y):\n {setting}\n return (e @ e.T).mean()\n")
    done = conform(file, "--as", "smooth_ap")
    assert done.exit_code == 1, done.exception
    assert "the whole program's " + message in done.output
    assert (torch.get_default_dtype(), torch.is_grad_enabled()) == (torch.float32, True)
    assert torch.get_default_device().type == "cpu"


@pytest.mark.parametrize(
    "content",
    [
        "class f(torch.nn.Module):\n @property\n def forward(self): raise RuntimeError('no')",
        "def __getattr__(name): raise RuntimeError('no')",
    ],
)
def test_an_attribute_that_raises_is_one_error(tmp_path, content):
    file = tmp_path / "mine.py"
    file.write_text(f"import torch\n{content}\n")
    with pytest.raises(ConfigError, match="RuntimeError: no"):
        raise conform(f"{file}:f", "--as", "smooth_ap").exception


def test_memory_that_nobody_can_count_is_said(tmp_path, monkeypatch):
    # So many bytes are counted while a profiler that the loss has started is running.
    monkeypatch.setattr(execution, "tensor_bytes", lambda call: (0, 0))
    file = tmp_path / "mine.py"
    file.write_text("def smooth_ap(e, y):\n return (e @ e.T).mean()")
    done = conform(file, "--as", "smooth_ap")
    assert done.exit_code == 1, done.exception
    assert "a profiler of its own is running" in done.output


@pytest.mark.parametrize("of", ["threading.Thread", "multiprocessing.get_context('fork').Process"])
def test_what_a_file_leaves_running_does_not_hold_the_command(tmp_path, of):
    file = tmp_path / "mine.py"
    file.write_text(
        "import threading, multiprocessing, time\n"
        f"{of}(target=time.sleep, args=(60,), name='busy').start()\nraise ValueError"
    )
    program = (
        "import benchmark.cli.conform as verb, benchmark.__main__ as program\n"
        "verb.PATIENCE = 0.1\nprogram.main()"
    )
    words = ["conform", str(file), "--as", "smooth_ap"]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 2
    assert "left running: busy; the command ends" in done.stderr
