"""Small folders of images, and the command that writes studies of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from archives import save
from typer.testing import CliRunner, Result

from benchmark.__main__ import app


@pytest.fixture
def flowers(tmp_path: Path) -> Path:
    """Returns a folder with 8 classes of 5 small colour images."""
    root = tmp_path / "flowers"
    for label in range(8):
        for number in range(5):
            save(root / f"kind {label}" / f"{number}.png", 10 * label + number)
    return root


@pytest.fixture
def init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Returns a function that calls ``folder init`` in a folder of its own, without the packaged
    weights."""
    monkeypatch.setattr("benchmark.models.weights.package_at_hand", lambda: False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return lambda *arguments: CliRunner().invoke(app, ["folder", "init", *map(str, arguments)])
