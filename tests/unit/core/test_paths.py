"""Names from outside: paths below a root, or none."""

from __future__ import annotations

import pytest

from benchmark.core.paths import is_text, leaves_root


@pytest.mark.parametrize("name", ["a.jpg", "a/b.jpg", "a..b/c", "花/ü.png", "./a"])
def test_names_that_stay_are_told(name):
    assert not leaves_root(name)


@pytest.mark.parametrize(
    "name", ["", "/etc/x", "../x", "a/../../x", "C:\\x", "..\\x", "\\\\host\\x", "a\0b", "a/.."]
)
def test_names_that_leave_or_cannot_be_are_told(name):
    assert leaves_root(name)


@pytest.mark.parametrize(
    ("name", "expected"), [("a b\u00a0ü", True), ("\x1b[2J", False), ("\udcff", False)]
)
def test_text_can_be_written_and_shown(name, expected):
    assert is_text(name) == expected
