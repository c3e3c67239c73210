"""The walks in docs/architecture.md name files and names that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^\d\. .*$", PAGE.split("## A walk for a stranger")[1].split("\n## ")[0], re.M)
NAMED = re.compile(r"`((?:benchmark|workflow)/[^`]+)` \(`([^`]+)`\)")


def test_there_are_three_walks_of_five_steps():
    assert [step[0] for step in STEPS] == list("12345") * 3


@pytest.mark.parametrize("step", STEPS)
def test_a_step_names_what_exists(step):
    named = NAMED.findall(step)
    assert named and len(named) == len(re.findall(r"`(?:benchmark|workflow)/", step))
    for path, name in named:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text), f"{path} has no {name}"
