"""``fill``: one run that breaks leaves a word in its log and does not stop the others."""

from __future__ import annotations

import pytest

from benchmark.cli.train import _train_quietly
from benchmark.core.errors import RunError
from benchmark.training import run


@pytest.mark.parametrize(
    ("error", "told", "logged"),
    [
        (RunError("no room"), "no room", "error: no room"),
        (ZeroDivisionError("of a plugin"), "ZeroDivisionError: of a plugin", "Traceback"),
    ],
)
def test_any_error_of_a_run_is_its_own(error, told, logged, tmp_path, monkeypatch):
    def broken(spec):
        raise error

    monkeypatch.setattr(run, "train", broken)
    assert _train_quietly(tmp_path / "spec.json") == told
    assert logged in (tmp_path / "train.log").read_text()
