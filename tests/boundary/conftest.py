"""The command line, called on files from elsewhere in an empty folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmark.__main__ import main


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch):
    """Work in an empty folder, in which the corpus tries to make files called ``owned``."""
    (tmp_path / "work" / "in").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work" / "in")
    yield
    assert not list(tmp_path.rglob("*owned*")), "something ran, or landed outside"
    assert not Path("/tmp/owned").exists()
    assert {path.name for path in (tmp_path / "work").iterdir()} == {"in"}


@pytest.fixture
def command(monkeypatch, capsys):
    """Return a function that calls the command line and returns (exit status, what it said)."""

    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["benchmark", *map(str, arguments)])
        monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return ended.value.code, shown.out + shown.err

    return run
