"""Every promise of docs/robustness.md names a test that there is."""

from __future__ import annotations

import re

import pytest
from pages import ROOT

PAGE = (ROOT / "docs" / "robustness.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`([\w/]+\.py)::(test_\w+)`", PAGE)


def test_every_promise_names_its_test():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "promise |" not in line]
    assert len(rows) == len(NAMED) > 20


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_a_named_test_exists(file, test):
    assert f"\ndef {test}(" in (ROOT / "tests" / file).read_text(encoding="utf-8")
