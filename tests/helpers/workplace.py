"""Snakemake in a folder of its own, with a training that takes no time."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from dry_runs import DryRuns

ROOT = Path(__file__).resolve().parents[2]
QUICK = ROOT / "tests" / "workflow" / "quick_training"
LOCAL = ROOT / "workflow" / "profiles" / "local"
# Steps behind the runs, for tests that only ask whether or where they are started.
REPORT_STEPS = "build analyse register-analysis track"
ALL_STEPS = f"collect {REPORT_STEPS}"
STUCK = 1800  # seconds after which a program counts as stuck, on a busy machine too


def small_study(name: str, losses: list[str], tau: float = 0.1) -> dict[str, Any]:
    """Returns a study of two seeds; the variant ``smooth_ap_wide`` has the given tau."""
    block = {
        "name": "main",
        "datasets": ["glyphs_tiny"],
        "recipe": "glyphs_smoke",
        "losses": losses,
        "batch_sizes": [32],
    }
    study = {
        "study": name,
        "title": "A small study",
        "seeds": [0, 1],
        "blocks": [block],
        "metrics": ["recall_at_1", "map_at_r"],
        "comparison": {"baseline": losses[0]},
    }
    if "smooth_ap_wide" in losses:
        study["losses"] = {"smooth_ap_wide": {"loss": "smooth_ap", "tau": tau}}
    return study


@dataclass
class Workplace:
    """A folder with studies, in which the project's Snakefile is run."""

    folder: Path
    code: Path = ROOT  # where the Snakefile and the package lie
    dry_runs: DryRuns | None = None
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def runs(self) -> Path:
        """Returns the folder of all runs."""
        return self.folder / "results" / "runs"

    def write(self, study: dict[str, Any]) -> None:
        """Writes a study file."""
        (self.folder / f"{study['study']}.yaml").write_text(yaml.safe_dump(study, sort_keys=False))

    def snakemake(
        self,
        study: str,
        *arguments: str,
        target: str = "",
        collect_only: bool = True,
        hooks: bool = False,
    ) -> subprocess.CompletedProcess:
        """Run Snakemake up to runs.csv, to ``target`` or to the end; return the finished
        process."""
        targets = [target] if target else []
        if collect_only and not target:
            targets = up_to_the_tables(study)
        command = [sys.executable, "-m", "snakemake", *targets]
        command += [*self.arguments(study), *([] if hooks else ["--no-hooks"]), *arguments]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=STUCK,
            check=False,
        )

    def dry_run(self, study: str, *targets: str) -> subprocess.CompletedProcess:
        """Return a finished dry run up to runs.csv, or to ``targets``."""
        assert self.dry_runs is not None
        chosen = targets or up_to_the_tables(study)
        return self.dry_runs.ask(self.folder, *chosen, *self.arguments(study), "--no-hooks")

    def arguments(self, study: str) -> list[str]:
        """Return Snakemake's arguments for a study, with words that say what is run."""
        paths = ["--snakefile", str(self.code / "Snakefile"), "--profile", str(LOCAL)]
        return [*paths, "--cores", "2", "--config", f"study={study}.yaml", "--quiet", "host"]

    @property
    def variables(self) -> dict[str, str]:
        """Return the variables of Snakemake's process."""
        path = os.pathsep.join([str(QUICK), str(self.code)])
        return {**os.environ, "PYTHONPATH": path, **self.environment}

    def results(self) -> dict[str, tuple[int, bytes]]:
        """Returns time of change and content of every result by run id."""
        paths = self.runs.glob("*/*/*/*/*/result.json")
        return {
            path.parent.relative_to(self.runs).as_posix(): (
                path.stat().st_mtime_ns,
                path.read_bytes(),
            )
            for path in paths
        }


def up_to_the_tables(study: str) -> list[str]:
    """Return the targets of all runs and the table of them."""
    return ["runs", f"results/{study}/runs.csv"]


def jobs(process: subprocess.CompletedProcess) -> dict[str, int]:
    """Return the job counts that Snakemake prints, by rule."""
    return counted_jobs(process.stdout + process.stderr)


def counted_jobs(printed: str) -> dict[str, int]:
    """Return the job counts by rule in what Snakemake printed."""
    lines, counts = printed.splitlines(), {}
    for start in (number for number, line in enumerate(lines) if line.startswith("Job stats:")):
        for line in lines[start + 3 :]:
            parts = line.split()
            if len(parts) != 2 or not parts[1].isdigit():
                break
            counts[parts[0]] = int(parts[1])
    return counts
