"""Names from outside: joined below a root, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmark.core.errors import DataError
from benchmark.core.paths import is_text, path_below


@pytest.mark.parametrize("name", ["a.jpg", "a/b.jpg", "a..b/c", "花/ü.png", "./a"])
def test_names_that_stay_are_joined(name):
    assert path_below(Path("/root"), name) == Path("/root") / name


@pytest.mark.parametrize(
    "name", ["", "/etc/x", "../x", "a/../../x", "C:\\x", "..\\x", "\\\\host\\x", "a\0b", "a/.."]
)
def test_names_that_leave_or_cannot_be_are_refused(name):
    with pytest.raises(DataError, match="leads out of /root"):
        path_below(Path("/root"), name)


@pytest.mark.parametrize(
    ("name", "expected"), [("a b\u00a0ü", True), ("\x1b[2J", False), ("\udcff", False)]
)
def test_text_can_be_written_and_shown(name, expected):
    assert is_text(name) == expected
