"""The tutorial and the page on challenges, followed word for word in a copy of the repository."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml
from pages import NOT_RUN, ROOT, blocks, followed

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


@pytest.mark.stress
def test_following_the_tutorial_gives_a_verdict_on_the_new_loss(tmp_path):
    copy, printed = followed(blocks(PAGE), tmp_path)
    results = copy / "results" / "tutorial"
    assert "RampAP" in (results / "report" / "index.html").read_text()
    tests = (results / "tables" / "paired.md").read_text()
    assert tests in printed
    assert "RampAP" in tests
    assert "SmoothAP" in tests
    assert "tutorial_1k: 15 runs" in printed


@pytest.mark.stress
def test_following_the_page_on_challenges_gives_the_rank_of_the_new_loss(tmp_path):
    page = blocks(ROOT / "docs" / "challenge.md")
    copy, printed = followed(page, tmp_path, "results/reference")
    assert "rank " in printed
    assert " of 17 " in printed
    assert "Gap" in (copy / "results/challenge_gap-selected/tables/paired.md").read_text()
