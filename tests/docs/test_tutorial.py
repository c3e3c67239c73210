"""The tutorial, followed word for word in a copy of the repository."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pages import ROOT, Block, blocks

PAGE = ROOT / "docs" / "tutorial.md"
# install: the environment that runs this test stands in for the one it makes; minutes: too long for a test
NOT_RUN = {"install", "minutes"}
LEFT_BEHIND = shutil.ignore_patterns(
    ".git", ".venv", "results", "*.egg-info", "__pycache__", ".*_cache", "tests", "data"
)


def test_every_block_is_a_file_a_command_or_an_output():
    kinds = {(block.language, "/" in block.title or "." in block.title) for block in blocks(PAGE)}
    assert kinds == {("bash", False), ("python", True), ("yaml", True), ("text", False)}
    for block in blocks(PAGE):
        if block.language == "python":
            ast.parse(block.text)
        if block.language == "yaml":
            assert yaml.safe_load(block.text)["study"] == Path(block.title).stem


def test_the_blocks_that_are_not_run_are_the_ones_known():
    titles = {block.title for block in blocks(PAGE) if block.language == "bash"}
    assert titles == {"", *NOT_RUN}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a copy of the repository without results."""
    return Path(
        shutil.copytree(
            ROOT, tmp_path_factory.mktemp("tutorial") / "clone", ignore=LEFT_BEHIND, symlinks=True
        )
    )


def follow(page: list[Block], folder: Path) -> str:
    """Returns what the commands of ``page`` print; files are written where the page says, all in one shell."""
    lines = ["set -e"]
    for block in page:
        if block.language in ("python", "yaml"):
            path = folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
        elif block.language == "bash" and block.title not in NOT_RUN:
            lines.append(block.text)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(folder),
    }
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1500,  # a minute on a free machine, much more on a crowded one
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


@pytest.mark.stress
def test_following_the_tutorial_gives_a_verdict_on_the_new_loss(copy):
    page = blocks(PAGE)
    printed = follow(page, copy)
    shown = [line for block in page if block.language == "text" for line in block.text.splitlines()]
    for line in shown:
        assert line.replace("...", str(copy)) in printed, line
    report = (copy / "results" / "tutorial" / "report" / "index.html").read_text()
    assert "RampAP" in report
    tests = (copy / "results" / "tutorial" / "tables" / "paired.md").read_text()
    assert tests in printed
    assert "RampAP" in tests and "SmoothAP" in tests
    assert "tutorial_1k: 15 runs" in printed
