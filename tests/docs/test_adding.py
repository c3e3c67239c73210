"""The changes that docs/adding.md shows work in a copy of the package, and touch few files."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

from pages import ROOT, blocks

MOST = {
    "metrics/": 3,
    "datasets/": 2,
    "verdicts/verdicts.py": 1,
    "verdicts/pair_tests/": 4,
    "published/": 2,
    "report/": 1,
    "replay/": 1,
}  # files of benchmark/ by its part


def test_each_example_applies_works_and_touches_few_files(tmp_path):
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "benchmark", tmp_path / "benchmark", ignore=ignored)
    shown = blocks(ROOT / "docs" / "adding.md")
    for part, most in MOST.items():
        (change,) = (each.text for each in shown if f"+++ b/benchmark/{part}" in each.text)
        assert len(re.findall(r"^\+\+\+ b/benchmark/", change, re.MULTILINE)) <= most
        apply = ["git", "apply", "--whitespace=nowarn"]
        subprocess.run(apply, input=change, text=True, check=True, cwd=tmp_path)
    checks = [each.text for each in shown if each.language == "python" and "assert" in each.text]
    assert len(checks) == len(MOST)
    subprocess.run([sys.executable, "-c", "\n".join(checks)], check=True, cwd=tmp_path)
