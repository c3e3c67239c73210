"""What people read after a slip: the message names what is wrong, and the command that leads on."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from pages import ROOT
from typer.testing import CliRunner

from benchmark.__main__ import app

REFUSED_BY_THE_SUITE = [
    "plan embeded",
    "plan mine",
    "plan ./nine.yaml",
    "train --spec spec.json",
    "train --spec run",
    "stats smoke",
    "verdicts smoke",
    "claims smoke",
    "freeze smoke",
    "check smoke",
    "tables smoke",
    "plots smoke",
    "report smoke",
    "data check cubb",
    "data check cub",
    "analyse toy_rankin",
    "folder init nowhere",
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the current folder: a study file, a folder of a run, and no results."""
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text("study: mine\n")
    Path("run").mkdir()
    Path("run/spec.json").write_text("{}")
    return tmp_path


@pytest.mark.parametrize("words", REFUSED_BY_THE_SUITE)
def test_an_error_says_what_to_do_next(place, words, messages):
    """The advice itself stands in the snapshot; the commands that it names exist."""
    done = CliRunner().invoke(app, words.split())
    messages(done.exception)
    verbs = set(re.findall(r"python -m benchmark (\w+)", str(done.exception)))
    assert verbs <= set(typer.main.get_command(app).commands)


@pytest.mark.parametrize(
    ("words", "nearest"), [("plann smoke", "'plan'"), ("plan smoke --result x", "--results")]
)
def test_a_misspelt_word_of_the_command_line_is_told_with_the_nearest(words, nearest):
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code == 2
    assert nearest in done.output


def test_completion_of_the_module_works_for_the_installed_command(tmp_path):
    if shutil.which("ranking-benchmark", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("the package is not installed in this environment")
    python = shlex.quote(sys.executable)
    folder = shlex.quote(str(Path(sys.executable).parent))
    script = f"""
        export PATH={folder}:$PATH _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION=1
        eval "$({python} -m benchmark --show-completion bash)"
        COMP_WORDS=(ranking-benchmark folder i) COMP_CWORD=2
        _ranking_benchmark_completion ranking-benchmark
        echo "${{COMPREPLY[@]}}"
    """
    assert subprocess.check_output(["bash", "-c", script], cwd=ROOT, text=True).strip() == "init"
