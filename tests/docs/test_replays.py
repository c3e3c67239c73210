"""The worked examples of ``judge`` show what the command prints."""

from __future__ import annotations

import re
import shlex

import pytest
from pages import ROOT
from typer.testing import CliRunner

from benchmark.__main__ import app

PAGES = [ROOT / "docs" / "verdicts.md", ROOT / "docs" / "background" / "public_reports.md"]
EXAMPLE = re.compile(r"```\n\$ (python -m benchmark judge [^\n]*)\n(.*?)```", re.DOTALL)
EXAMPLES = [each for page in PAGES for each in EXAMPLE.findall(page.read_text(encoding="utf-8"))]


def test_every_public_report_has_its_example():
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize(("command", "shown"), EXAMPLES, ids=[command for command, _ in EXAMPLES])
def test_an_example_shows_what_the_command_prints(command, shown):
    result = CliRunner().invoke(app, shlex.split(command)[3:])
    assert result.exit_code == 0
    assert result.output.rstrip() == shown.rstrip()
