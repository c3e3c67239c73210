"""docs/environment.md names every environment variable of the project, and no other."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = re.compile(r"\bBENCHMARK_[A-Z_]*[A-Z]\b")


def test_the_page_names_every_variable_that_the_code_reads():
    places = ["benchmark", "snakemake_logger_plugin_runs", "workflow", "Snakefile", "Makefile"]
    places += ["envs", "tests/helpers", "tests/browser"]
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", *places],
        capture_output=True,
        text=True,
        check=True,
    )
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    read = {
        name
        for path in files
        if path.is_file()
        for name in VARIABLE.findall(path.read_text(encoding="utf-8", errors="ignore"))
    }
    page = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
    assert set(VARIABLE.findall(page)) == read
