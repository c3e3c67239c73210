"""Where Snakemake cannot write, 'run' says so in one error."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmark.study.format import ROOT


@pytest.mark.parametrize("place", [".snakemake", ".snakemake/locks", ".snakemake/log", "cache"])
def test_a_place_that_cannot_be_written_is_one_error(place, tmp_path):
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).touch()  # root may write to a folder that is read-only, but not into a file
    done = subprocess.run(
        [sys.executable, "-m", "benchmark", "run", "smoke", "--dry-run"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and done.stderr.startswith("error: cannot write ")
    assert place in done.stderr and "Traceback" not in done.stderr
