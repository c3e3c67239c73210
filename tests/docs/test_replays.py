"""The worked examples of ``docs/judge.md`` show what the command prints."""

from __future__ import annotations

import re
import shlex

import pytest
from pages import ROOT
from typer.testing import CliRunner

from benchmark.__main__ import app

PAGE = ROOT / "docs" / "judge.md"
EXAMPLE = re.compile(r"```\n\$ (python -m benchmark judge [^\n]*)\n(.*?)```", re.DOTALL)
EXAMPLES = EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))


def test_every_public_report_has_its_example():
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize(("command", "shown"), EXAMPLES, ids=[command for command, _ in EXAMPLES])
def test_an_example_shows_what_the_command_prints(command, shown):
    result = CliRunner().invoke(app, shlex.split(command)[3:])
    assert result.exit_code == 0
    assert result.output.rstrip() == shown.rstrip()
