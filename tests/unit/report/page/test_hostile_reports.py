"""Pages of studies from elsewhere: nothing runs, nothing outside of the folder is shown."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import pytest
from made_up_inputs import made_up_inputs, written_page

from benchmark.core.errors import DataError, RunError, print_error
from benchmark.core.paths import file_below
from benchmark.report.page.page import build_page
from benchmark.report.records import CONTENTS


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


def test_a_figure_with_a_script_is_shown_without_it(made):
    inputs, folder, _ = made
    path = next((folder / "figures").glob("*.svg"))
    good = path.read_text()
    path.write_text(good.replace("</svg>", "<script>alert(1)</script></svg>"))
    try:
        assert "alert(1)" not in build_page(inputs, folder)
        path.write_text("no figure")
        assert "its figure cannot be shown" in build_page(inputs, folder)
    finally:
        path.write_text(good)


def test_a_record_that_names_a_file_elsewhere_is_not_shown(made, tmp_path):
    inputs, folder, _ = made
    (tmp_path / "secret.svg").write_text("secret words")
    path = folder / "figures" / CONTENTS
    good = path.read_text()
    records = json.loads(good)
    records[0] |= {"name": "../../../../../../../../etc/passwd", "reason": ""}
    path.write_text(json.dumps(records))
    try:
        assert "leads out of" in build_page(inputs, folder)
    finally:
        path.write_text(good)


def test_a_link_does_not_lead_out_of_the_folder(tmp_path):
    root = tmp_path / "study"
    root.mkdir()
    (tmp_path / "secret").write_text("x")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "good").write_text("x")
    assert file_below(root, "good") == root / "good"
    with pytest.raises(DataError, match=r"leads out of .* through a link"):
        file_below(root, "link")


def test_names_that_steer_a_terminal_are_shown_with_escapes(capsys):
    assert print_error(RunError("no file \x1b[2J\x9b31m \u202e \udcff ü\n  next line")) == 2
    assert capsys.readouterr().err == (
        "error: no file \\x1b[2J\\x9b31m \\u202e \\udcff ü\n  next line\n"
    )
