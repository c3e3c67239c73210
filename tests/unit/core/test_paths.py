"""Names from outside: paths below a root, or none."""

from __future__ import annotations

import pytest

from benchmark.core.errors import RunError, print_error
from benchmark.core.paths import is_text, leaves_root, public, without_paths


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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/somebody/data/glyphs", "…/glyphs"),
        ("/home/somebody", "…"),
        ("/Users/somebody", "…"),
        ("/home/user one/my data/cub 200", "…/cub 200"),
        ("~/weights.pt", "…/weights.pt"),
        ("~somebody/weights.pt", "…/weights.pt"),
        (r"C:\Users\somebody\weights.pt", "…/weights.pt"),
        (r"C:\Users\somebody", "…"),
        ("D:/some body/weights.pt", "…/weights.pt"),
        (r"\\machine\share\somebody\weights.pt", "…/weights.pt"),
        ("file:///home/somebody/a.png", "…/a.png"),
        ("file://machine/home/user one/a.png", "…/a.png"),
        ("sqlite:////home/somebody/mlflow.db", "…/mlflow.db"),
        ("cannot read '/home/user one/y.png': torn", "cannot read '…/y.png': torn"),
        ("no such folder: /home/user one/data; give one", "no such folder: …/data; give one"),
        ("{'root': '/home/somebody/a b'}", "{'root': '…/a b'}"),
        ("root=/home/somebody/a (see /tmp/b)", "root=…/a (see …/b)"),
        ("/results/runs/x/result.json cannot be read", "…/result.json cannot be read"),
    ],
)
def test_absolute_paths_are_cut_to_their_last_part(text, shown):
    assert without_paths(text) == shown
    assert without_paths(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "glyphs/a.png",
        "glyphs_1k/resnet10t~sota/smooth_ap/bs32/seed0",
        "1/2 and 3 / 4",
        "https://example.org/a/b",
        "10:30, about ~12 s left",
        "package:efficientnet_lite0",
        "drive C: is full",
        "",
    ],
)
def test_everything_else_is_left_alone(text):
    assert without_paths(text) == text


def test_entries_about_hosts_and_people_are_left_out_at_any_depth():
    record = {
        "cpu": "some",
        "host": "machine",
        "runs": [{"USER": "somebody", "seed": 1}],
        "dataset.home": "x",
        "root": ("/home/somebody/a", 3, None),
    }
    assert public(record) == {"cpu": "some", "runs": [{"seed": 1}], "root": ["…/a", 3, None]}


def test_names_that_steer_a_terminal_are_shown_with_escapes(capsys):
    assert print_error(RunError("no file \x1b[2J\x9b31m \u202e \udcff ü\n  next line")) == 2
    assert capsys.readouterr().err == (
        "error: no file \\x1b[2J\\x9b31m \\u202e \\udcff ü\n  next line\n"
    )
