"""Small datasets, as their publishers hand them out and unpacked, and the command on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import archives
import pytest
from published_files import publish
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.errors import BenchmarkError, DataError
from benchmark.datasets import load_dataset


@pytest.fixture
def make(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that writes a small dataset and returns its root."""

    def write(name: str) -> Path:
        (archives.MAKERS | archives.BROUGHT)[name](tmp_path / name)
        return tmp_path / name

    return write


@pytest.fixture
def command():
    """Return a function that runs ``data ...`` and returns what it printed; errors are raised."""

    def run(*arguments: object, status: int = 0) -> str:
        shown = CliRunner().invoke(app, ["data", *map(str, arguments)])
        if isinstance(shown.exception, BenchmarkError):
            raise shown.exception
        assert shown.exit_code == status, shown.output
        return shown.output

    return run


@pytest.fixture
def files(tmp_path):
    """Return a function that gives the published files of a small dataset."""

    def made(name: str) -> list[Path]:
        folder = tmp_path / "published" / name
        folder.mkdir(parents=True, exist_ok=True)
        return publish(name, folder)

    return made


@pytest.fixture
def refused(messages):
    """Return a function that gives (code, file) of each problem of a dataset that is refused.

    Its words are compared with the snapshot, but for those of another library.
    """

    def problems(name: str, root: Path, **params: object) -> list[tuple[str, str]]:
        with pytest.raises(DataError) as caught:
            settings = {"root": str(root), "allow_counts": True, **params}
            if name == "folder":
                del settings["allow_counts"]  # it has no published counts
            load_dataset(name, settings)
        found = [(problem.code, problem.key) for problem in caught.value.problems]
        if "unreadable" not in dict(found):
            messages(caught.value)
        return found

    return problems
