"""The tutorial, followed word for word in a copy of the repository."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml
from pages import NOT_RUN, ROOT, blocks, copy_of_the_repository, expected_lines, follow

PAGE = ROOT / "docs" / "tutorial.md"


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
    """Return a copy of the repository without results."""
    return copy_of_the_repository(tmp_path_factory.mktemp("tutorial"))


@pytest.mark.stress
def test_following_the_tutorial_gives_a_verdict_on_the_new_loss(copy):
    page = blocks(PAGE)
    printed = follow(page, copy)
    for line in expected_lines(page, copy):
        assert line in printed, line
    report = (copy / "results" / "tutorial" / "report" / "index.html").read_text()
    assert "RampAP" in report
    tests = (copy / "results" / "tutorial" / "tables" / "paired.md").read_text()
    assert tests in printed
    assert "RampAP" in tests and "SmoothAP" in tests
    assert "tutorial_1k: 15 runs" in printed
