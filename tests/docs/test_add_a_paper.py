"""Following the page about adding a paper ends in verdicts and the printed table."""

from __future__ import annotations

import pytest
from followed_pages import copy_of_the_repository, expected_lines, follow, write_files
from pages import ROOT, blocks
from paper_folders import load_paper

from benchmark.papers.coverage import MISSING, coverage
from benchmark.study import load_study

PAGE = blocks(ROOT / "docs" / "add_a_paper.md")


def test_the_papers_folder_is_sound_and_the_study_has_a_run_for_each_number(tmp_path, monkeypatch):
    write_files(PAGE, tmp_path)
    folder = tmp_path / "my_papers"
    paper = load_paper(folder / "glyphs2030")
    assert len(paper.numbers) == 4 and list(paper.tables) == ["table1"] and len(paper.claims) == 1
    monkeypatch.setenv("BENCHMARK_PLUGINS", str(folder))
    table = coverage([load_study(str(folder / "glyphs_check.yaml"))], tmp_path)
    own = table[table["paper"] == "glyphs2030"]
    assert len(own) == 4 and MISSING not in set(own["state"])


@pytest.mark.stress
def test_following_the_page_gives_verdicts_and_the_printed_table(tmp_path):
    copy = copy_of_the_repository(tmp_path)
    printed = follow(PAGE, copy)
    for line in expected_lines(PAGE, copy):
        assert line in printed, line
    verdicts = (copy / "results" / "glyphs_check" / "verdicts.csv").read_text()
    assert verdicts.count("glyphs2030") == 4
    report = (copy / "results" / "glyphs_check" / "report" / "index.html").read_text()
    assert "FastAP retrieves better than SmoothAP." in report
