"""The command, and published files to give to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from published_files import publish
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.errors import BenchmarkError


@pytest.fixture
def command():
    """Returns a function that runs ``data ...`` and returns what it printed; errors are raised."""

    def run(*arguments: object, status: int = 0) -> str:
        shown = CliRunner().invoke(app, ["data", *map(str, arguments)])
        if isinstance(shown.exception, BenchmarkError):
            raise shown.exception
        assert shown.exit_code == status, shown.output
        return shown.output

    return run


@pytest.fixture
def files(tmp_path):
    """Returns a function that gives the published files of a small dataset."""

    def made(name: str) -> list[Path]:
        folder = tmp_path / "published" / name
        folder.mkdir(parents=True, exist_ok=True)
        return publish(name, folder)

    return made


@pytest.fixture
def into(tmp_path):
    folder = tmp_path / "root" / "into"
    folder.mkdir(parents=True)
    return folder
