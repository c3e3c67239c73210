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

CASES = {
    "misspelt study": (["plan", "embeded"], "did you mean 'embedded'"),
    "study file by its name": (["plan", "mine"], "give its path: mine.yaml"),
    "misspelt study file": (["plan", "./nine.yaml"], "did you mean mine.yaml"),
    "misspelt verb": (["plann", "smoke"], "Did you mean 'plan'"),
    "misspelt option": (["plan", "smoke", "--result", "x"], "--results"),
    "no specification": (["train", "--spec", "spec.json"], "python -m benchmark specs STUDY"),
    "folder of a run": (["train", "--spec", "run"], "--spec run/spec.json"),
    "statistics of nothing": (["stats", "smoke"], "python -m benchmark run smoke"),
    "verdicts on nothing": (["verdicts", "smoke"], "python -m benchmark collect smoke"),
    "claims about nothing": (["claims", "smoke"], "python -m benchmark collect smoke"),
    "freezing nothing": (["freeze", "smoke"], "python -m benchmark collect smoke"),
    "checking nothing": (["check", "smoke"], "python -m benchmark run smoke"),
    "tables of nothing": (["tables", "smoke"], "yet; 'python -m benchmark run smoke'"),
    "figures of nothing": (["plots", "smoke"], "yet; 'python -m benchmark run smoke'"),
    "report of nothing": (["report", "smoke"], "python -m benchmark collect smoke"),
    "misspelt dataset": (["data", "check", "cubb"], "did you mean 'cub'"),
    "dataset that is not there": (
        ["data", "check", "cub"],
        "'python -m benchmark data prepare cub' makes it, or name another with --root",
    ),
    "misspelt analysis": (["analyse", "toy_rankin"], "did you mean 'toy_ranking'"),
    "a folder that is not there": (
        ["folder", "init", "nowhere"],
        "give the parent of the class folders",
    ),
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the current folder: a study file, a folder of a run, and no results."""
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text("study: mine\n")
    Path("run").mkdir()
    Path("run/spec.json").write_text("{}")
    return tmp_path


@pytest.mark.parametrize(("arguments", "advice"), CASES.values(), ids=CASES)
def test_an_error_says_what_to_do_next(place, arguments, advice):
    done = CliRunner().invoke(app, arguments)
    message = f"{done.output} {done.exception}"
    assert done.exit_code != 0
    assert advice in message
    verbs = set(re.findall(r"python -m benchmark (\w+)", message))
    assert verbs <= set(typer.main.get_command(app).commands)


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
