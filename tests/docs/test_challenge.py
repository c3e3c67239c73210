"""The page on challenging the field, followed word for word in a copy of the repository."""

from __future__ import annotations

import shutil

import pytest
from pages import ROOT, blocks, copy_of_the_repository, expected_lines, follow

PAGE = ROOT / "docs" / "challenge.md"


@pytest.mark.stress
def test_following_the_page_gives_the_rank_of_the_new_loss(tmp_path):
    copy = copy_of_the_repository(tmp_path)
    shutil.copytree(ROOT / "results" / "reference", copy / "results" / "reference")
    page = blocks(PAGE)
    printed = follow(page, copy)
    for line in expected_lines(page, copy):
        assert line in printed, line
    assert "rank " in printed and " of 17 " in printed
    assert "Gap" in (copy / "results/challenge_gap-selected/tables/paired.md").read_text()
