"""The walks in docs/architecture.md name what the packages have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^\d\. .*$", PAGE.split("## A walk for a stranger")[1].split("\n## ")[0], re.M)
NAMED = re.compile(r"`([a-z]+)` \(`([^`]+)`\)")


def test_there_are_three_walks_of_five_steps():
    assert [step[0] for step in STEPS] == list("12345") * 3


@pytest.mark.parametrize("step", STEPS)
def test_a_step_names_what_exists(step):
    named = NAMED.findall(step)
    assert named
    for package, name in named:
        files = [*(ROOT / "benchmark" / package).rglob("*.py")]
        files += (ROOT / "benchmark" / package).rglob("*.yaml")
        here = rf"(?<!\w){re.escape(name)}(?!\w)"
        found = any(re.search(here, path.read_text(encoding="utf-8")) for path in files)
        assert found, f"benchmark/{package} has no {name}"


def test_the_table_has_every_package():
    rows = re.findall(r"^\| `(\w+)` \|.*\| (?:yes|no) \|$", PAGE, re.M)
    assert set(rows) == {path.parent.name for path in (ROOT / "benchmark").glob("*/*.py")}
