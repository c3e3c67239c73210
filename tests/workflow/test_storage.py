"""Without a shared disk: each job brings its inputs, and its outputs are taken away."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from workplace import ROOT, DryRuns, Workplace, jobs, small_study

from benchmark.study import load_study
from benchmark.study.grid import expand

pytest.importorskip("snakemake_storage_plugin_fs")
STORED = ("--default-storage-provider", "fs", "--shared-fs-usage", "none")
# The plugin calls rsync, which need not be there.
RSYNC = """#!/bin/bash
exec cp -aT "${@: -2:1}" "${@: -1}"
"""


@pytest.fixture
def stored(fresh: Workplace, tmp_path: Path, dry_runs: DryRuns) -> Workplace:
    """Returns an empty workplace with the program that moves files."""
    program = tmp_path / "bin" / "rsync"
    program.parent.mkdir()
    program.write_text(RSYNC)
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return replace(fresh, environment={**fresh.environment, "PATH": path}, dry_runs=dry_runs)


def test_the_smoke_study_plans_all_its_jobs(stored: Workplace):
    asked = ("-s", str(ROOT / "workflow/Snakefile"), "--cores", "2", "--config", "study=smoke")
    done = stored.dry_runs.ask(stored.folder, *asked, *STORED, "--quiet", "rules")
    assert done.returncode == 0, done.stdout
    counts = jobs(done)
    assert counts["train"] == len(expand(load_study("smoke")))
    assert counts["build"] == counts["register"] == 1


@pytest.mark.long
def test_a_run_is_trained_collected_and_reported(stored: Workplace):
    stored.write(small_study("small", ["smooth_ap"]) | {"seeds": [0]})
    page = "results/small/report/index.html"
    done = stored.snakemake("small", *STORED, target=page)
    assert done.returncode == 0, done.stdout + done.stderr
    folder = stored.folder / "results"
    (run,) = (path.parent for path in folder.glob("runs/*/*/*/*/*/result.json"))
    files = {"spec.json", "result.json", "metrics.jsonl", "queries.npz", "neighbours.npz"}
    assert files | {"provenance.json"} <= {path.name for path in run.iterdir()}
    assert (stored.folder / page).is_file()
    assert (folder / "small" / "report" / "failed.txt").read_text() == ""
    assert (folder / "small" / "tables" / "comparison.csv").is_file()
    assert "registered" in (stored.folder / page).read_text()
    left = (stored.folder / ".snakemake" / "storage").rglob("*.csv")
    assert not list(left), "what was brought is taken away again"
