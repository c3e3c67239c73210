"""The worked examples of the pages are what the rule computes and what ``judge`` prints."""

from __future__ import annotations

import re
import shlex

import pytest
from pages import ROOT, blocks, write_files
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.stats.intervals import holm
from benchmark.stats.reproduction import Evidence, compare


def page(name):
    return " ".join((ROOT / "docs" / name).read_text(encoding="utf-8").split())


@pytest.mark.parametrize("df, shown", [(4, "[-1.68, +0.28]"), (9, "[-1.55, +0.15]")])
def test_the_example_of_an_inconclusive_number_counts_rounding(df, shown):
    found = compare(Evidence(61.8, 5, 62.5, variance=0.16, df=df, slack=0.05))
    assert f"[{float(found.low):.2f}, {float(found.high):+.2f}]" == shown
    assert shown in page("verdicts.md")


def test_the_example_of_a_shared_spread():
    text = page("background/statistics.md")
    drifts = {
        df: float(compare(Evidence(62.4, 3, 65.9, variance=0.04, df=df)).p_drift) for df in (2, 6)
    }
    assert f"once in {round(1 / drifts[2], -1):.0f} tries" in text
    assert f"once in {round(1 / drifts[6], -3):,.0f} tries" in text
    alone, shared = (float(holm([p], planned=30)[0]) for p in drifts.values())
    assert alone > 0.05 >= shared
    assert f"(p = {alone:.2f})" in text


PAGES = [ROOT / "docs" / "verdicts.md", ROOT / "docs" / "background" / "public_reports.md"]
EXAMPLE = re.compile(r"```\n\$ (python -m benchmark judge [^\n]*)\n(.*?)```", re.DOTALL)
EXAMPLES = [each for page in PAGES for each in EXAMPLE.findall(page.read_text(encoding="utf-8"))]


def test_every_public_report_has_its_example():
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize(("command", "shown"), EXAMPLES, ids=[command for command, _ in EXAMPLES])
def test_an_example_shows_what_the_command_prints(command, shown, tmp_path, monkeypatch):
    write_files([each for page in PAGES for each in blocks(page)], tmp_path)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, shlex.split(command)[3:])
    assert result.exit_code == int(shown.startswith("failed:"))
    assert result.output.rstrip() == shown.rstrip()
