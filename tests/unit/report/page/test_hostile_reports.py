"""Pages of studies from elsewhere: nothing runs, nothing outside of the folder is shown."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from made_up_inputs import made_up_inputs, written_page

from benchmark.core.errors import RunError, print_error


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return the inputs, the folder and the page of a made-up study."""
    folder = tmp_path_factory.mktemp("study")
    inputs = made_up_inputs()
    return inputs, folder, written_page(inputs, folder)


def test_the_policy_allows_the_pages_own_style_and_script_alone(made):
    page = made[2]
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert "unsafe" not in policy
    for element in ("style", "script"):
        (content,) = re.findall(rf"<{element}>(.*?)</{element}>", page, re.S)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy.replace("&#43;", "+")
    assert not re.search(r"\sstyle=|\son\w+=", page)


def test_names_that_steer_a_terminal_are_shown_with_escapes(capsys):
    assert print_error(RunError("no file \x1b[2J\x9b31m \u202e \udcff ü\n  next line")) == 2
    assert capsys.readouterr().err == (
        "error: no file \\x1b[2J\\x9b31m \\u202e \\udcff ü\n  next line\n"
    )
