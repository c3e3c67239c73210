"""Names from outside: joined below a root, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmark.core.errors import DataError
from benchmark.core.paths import file_below, is_text, path_below, read_regular


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


def test_links_in_a_circle_are_left_to_the_reader(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        read_regular(file_below(tmp_path, "a"))
