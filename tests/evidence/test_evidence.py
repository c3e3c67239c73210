"""The evidence of the smallest study is made, and equals its digests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("evidence.py")


def evidence(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_smallest_study_gives_the_files_of_the_digests(tmp_path):
    run = evidence("released", "--files", tmp_path / "files")
    assert run.returncode == 0, run.stdout + run.stderr
    assert (tmp_path / "files" / "released" / "scores.csv").is_file()
    changed = tmp_path / "files" / "released" / "stats" / "summary.csv"
    changed.write_text(changed.read_text().replace("roxford5k_hard", "roxford5k_easy", 1))
    run = evidence("released", "--files", tmp_path / "files")
    assert run.returncode == 1 and "released/stats/summary.csv differs" in run.stdout
    assert "roxford5k_easy" in run.stdout and "1 of " in run.stdout
