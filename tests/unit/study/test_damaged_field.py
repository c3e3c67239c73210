"""A field of frozen results that cannot be read is named before a challenger is trained."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from benchmark.study.format import ROOT

LOSS = """
from benchmark.losses import LOSSES
from benchmark.losses.base import Loss


@LOSSES.register("mine")
class Mine(Loss):
    def forward(self, embeddings, labels):
        return embeddings.sum()
"""


@pytest.mark.parametrize("kind", ["trials", "final"])
def test_a_damaged_field_is_named_before_anything_is_trained(kind, tmp_path):
    (tmp_path / "mine.py").write_text(LOSS)
    shutil.copytree(ROOT / "results" / "reference" / "reality_check", tmp_path / "field")
    (tmp_path / "field" / kind / "runs.csv").write_text("")
    command = [sys.executable, "-m", "benchmark", "challenge", tmp_path / "mine.py", "--trials"]
    done = subprocess.run(
        [*command, "1", "--field", tmp_path / "field", "--results", tmp_path / "results"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2 and f"{kind}/runs.csv cannot be read" in done.stderr
    assert not (tmp_path / "results" / "runs").exists()
