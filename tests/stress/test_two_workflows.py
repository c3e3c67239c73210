"""Two Snakemakes at once: the second says why it does nothing, and does no harm."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from workplace import LOCAL, ROOT, Workplace, small_study

pytestmark = pytest.mark.stress


def test_the_second_of_two_workflows_ends_with_snakemakes_message_and_harms_nothing(tmp_path):
    workplace = Workplace(tmp_path)
    study = small_study("small", ["smooth_ap", "roadmap"])
    workplace.write(study)
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--snakefile",
        str(ROOT / "Snakefile"),
        "--profile",
        str(LOCAL),
    ]
    command += ["--cores", "1", "--config", "study=small.yaml"]
    first = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    deadline = time.monotonic() + 120
    while not list(workplace.runs.glob("*/*/*/*/*/train.log")) and time.monotonic() < deadline:
        time.sleep(0.1)
    second = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert first.poll() is None, "the first workflow was to be at work still"
    assert second.returncode != 0
    assert "cannot be locked" in second.stdout + second.stderr
    assert not (tmp_path / "results" / "small" / "runs.csv").exists(), (
        "the second builds no report of half a study"
    )
    output, _ = first.communicate(timeout=600)
    assert first.returncode == 0, output
    assert len(workplace.results()) == 4
