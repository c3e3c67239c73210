"""Snakemake in a folder of its own, with a training that takes no time."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
QUICK = ROOT / "tests" / "workflow" / "quick_training"
LOCAL = ROOT / "workflow" / "profiles" / "local"


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
    environment: dict[str, str] = field(default_factory=dict)
    seconds: int = 300  # after which a workflow counts as stuck

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
        command = [sys.executable, "-m", "snakemake"]
        if target:
            command += [target]
        elif collect_only:
            command += ["runs", f"results/{study}/runs.csv"]
        command += ["--snakefile", str(ROOT / "Snakefile"), "--profile", str(LOCAL), "--cores", "2"]
        command += [
            "--config",
            f"study={study}.yaml",
            *([] if hooks else ["--no-hooks"]),
            *("--quiet", "host"),  # Snakemake's own words, which say what is run
            *arguments,
        ]
        path = os.pathsep.join([str(QUICK), str(ROOT)])
        environment = {**os.environ, "PYTHONPATH": path, **self.environment}
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=self.seconds,
            check=False,
        )

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


def jobs(process: subprocess.CompletedProcess) -> dict[str, int]:
    """Returns the job counts that Snakemake prints, by rule."""
    lines = (process.stdout + process.stderr).splitlines()
    counts = {}
    for start in (number for number, line in enumerate(lines) if line.startswith("Job stats:")):
        for line in lines[start + 3 :]:
            parts = line.split()
            if len(parts) != 2 or not parts[1].isdigit():
                break
            counts[parts[0]] = int(parts[1])
    return counts
