"""What the machine refuses is one line, not a traceback."""

from __future__ import annotations

import io
import sys

import pytest

from benchmark import __main__ as program


@pytest.mark.parametrize(
    "words",
    [("validate", "n" * 5000), ("plan", "smoke", "--results", "r" * 5000)],
    ids=["name of a study", "folder of results"],
)
def test_a_name_that_no_disk_takes_is_one_error(words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmark", *words])
    with pytest.raises(SystemExit, match="2"):
        program.main()
    told = capsys.readouterr().err
    assert told.startswith("error: ") and "File name too long" in told and len(told) < 400


def test_a_folder_that_is_links_in_a_circle_is_one_error(tmp_path, monkeypatch, capsys):
    (tmp_path / "a").symlink_to("a")
    monkeypatch.setattr(sys, "argv", ["benchmark", "folder", "init", str(tmp_path / "a")])
    with pytest.raises(SystemExit, match="2"):
        program.main()
    assert "links in a circle" in capsys.readouterr().err


@pytest.mark.parametrize("also", ["", "sys.stderr.close()"])
def test_a_file_that_closes_the_output_is_one_error(also, tmp_path, monkeypatch):
    file, told = tmp_path / "mine.py", io.StringIO()
    file.write_text(f"import sys\nsys.stdout.close()\n{also}\ndef smooth_ap(e, y): ...")
    monkeypatch.setattr(sys, "argv", ["benchmark", "conform", str(file), "--as", "smooth_ap"])
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setattr(sys, "stderr", told)
    with pytest.raises(SystemExit, match="2"):
        program.main()
    assert also or "closed the standard output" in told.getvalue()


@pytest.mark.parametrize("address", ["s3://bucket/x", "file:///x"])
def test_an_address_is_no_folder_of_results(address, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["benchmark", "plan", "smoke", "--results", address])
    with pytest.raises(SystemExit, match="2"):
        program.main()
    assert "is an address; name a folder of this machine" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
