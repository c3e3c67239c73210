"""Small datasets in the layouts of the published archives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import archives
import pytest


@pytest.fixture
def make(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that writes a small dataset and returns its root."""

    def write(name: str) -> Path:
        root = tmp_path / name
        archives.MAKERS[name](root)
        return root

    return write
