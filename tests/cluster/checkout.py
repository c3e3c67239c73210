"""A checkout of the project on the one-node Slurm, used as its users do: edit the profile, then
``--profile slurm``."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(__file__).parent / "site"
LIMIT = 500  # seconds: many failures of a cluster are endless waits


class Checkout:
    """A folder with the workflow, whose profile names the partitions of the one-node Slurm."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.environment: dict[str, str] = {"CLUSTER_RECORDS": str(folder / "records")}
        self.log = folder / "snakemake.log"
        self._started: list[subprocess.Popen] = []
        (folder / "records").mkdir(parents=True)
        shutil.copytree(ROOT / "workflow", folder / "workflow")
        shutil.copytree(ROOT / "envs", folder / "envs")
        (folder / "slurm").symlink_to("workflow/profiles/slurm")
        (folder / "benchmark").symlink_to(ROOT / "benchmark")
        self.change_profile(
            {
                "latency-wait": 10,
                "slurm-init-seconds-before-status-checks": 1,
                "default-resources": {"slurm_partition": "cpu"},
                "set-resources": {"train": {"slurm_partition": "gpu"}},
            }
        )

    def change_profile(self, changes: dict[str, Any]) -> None:
        """Edit ``slurm/config.yaml``: sections get the given keys, other values are replaced."""
        path = self.folder / "slurm" / "config.yaml"
        profile = yaml.safe_load(path.read_text())
        for key, value in changes.items():
            profile[key] = {**profile.get(key, {}), **value} if isinstance(value, dict) else value
        path.write_text(yaml.safe_dump(profile))

    def profile(self) -> dict[str, Any]:
        """Return the profile as it is now."""
        return yaml.safe_load((self.folder / "slurm" / "config.yaml").read_text())

    def write(self, study: dict[str, Any]) -> None:
        """Write a study file."""
        (self.folder / f"{study['study']}.yaml").write_text(yaml.safe_dump(study, sort_keys=False))

    def start(self, study: str, *arguments: str) -> subprocess.Popen:
        """Start ``snakemake --profile slurm`` for the study; what it says goes to ``log``."""
        command = [sys.executable, "-m", "snakemake", *arguments, "--profile", "slurm"]
        path = os.pathsep.join([str(SITE), str(self.folder)])
        environment = {**os.environ, "PYTHONPATH": path, **self.environment}
        # These commands are typed by a user, whatever started the tests.
        environment.pop("MAKELEVEL", None)
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [*command, "--config", f"study={study}.yaml"],
                cwd=self.folder,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        self._started.append(process)
        return process

    def run(self, study: str, *arguments: str) -> int:
        """Run ``snakemake --profile slurm`` and returns its status."""
        return self.start(study, *arguments).wait(LIMIT)

    def said(self) -> str:
        """Return what Snakemake has printed so far."""
        return self.log.read_text(errors="replace")

    def jobs(self) -> list[dict[str, str]]:
        """Return what ``scontrol show job`` says of every job of this folder, oldest first."""
        printed = subprocess.check_output(["scontrol", "show", "job", "-o"], text=True)
        rows = [dict(re.findall(r"(\S+?)=(\S*)", line)) for line in printed.splitlines()]
        mine = [row for row in rows if row.get("WorkDir") == str(self.folder)]
        return sorted(mine, key=lambda row: int(row["JobId"]))

    def records(self) -> list[dict[str, Any]]:
        """Return what the processes of the suite noted about themselves, oldest first."""
        paths = sorted((self.folder / "records").iterdir())
        return [json.loads(path.read_text()) for path in paths]

    def run_folder(self) -> Path:
        """Return the folder of the only run."""
        (spec,) = (self.folder / "results" / "runs").glob("*/*/*/*/*/spec.json")
        return spec.parent

    def files_with_dates(self) -> dict[str, int]:
        """Return the time of change of every file of the only run."""
        return {path.name: path.stat().st_mtime_ns for path in self.run_folder().iterdir()}

    def wait_for(self, what: Callable[[], Any], seconds: float = LIMIT) -> Any:
        """Return the first true value of ``what()``, or fail with Snakemake's words."""
        deadline = time.monotonic() + seconds
        while not (value := what()):
            assert time.monotonic() < deadline, f"waited {seconds} s in vain\n{self.said()}"
            time.sleep(0.2)
        return value

    def wait_for_an_epoch(self) -> str:
        """Return the id of the Slurm job of the only run, once it has finished an epoch."""
        self.wait_for(lambda: list((self.folder / "results").glob("runs/*/*/*/*/*/metrics.jsonl")))
        return self.jobs()[-1]["JobId"]

    def close(self) -> None:
        """End what is still running."""
        for process in self._started:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
        left = ("RUNNING", "PENDING", "COMPLETING")
        if ids := [job["JobId"] for job in self.jobs() if job["JobState"] in left]:
            subprocess.run(["scancel", *ids], check=False)


def block(name: str, losses: list[str], **keys: Any) -> dict[str, Any]:
    """Return a block of runs of about a second each."""
    fixed = {"datasets": ["glyphs_tiny"], "recipe": "glyphs_smoke", "batch_sizes": [32]}
    return {"name": name, "losses": losses, **fixed, **keys}


def study(*blocks: dict[str, Any], seeds: int = 1, minutes: int = 60) -> dict[str, Any]:
    """Return the study ``small`` of these blocks; its runs ask for a GPU, a pretended one."""
    return {
        "study": "small",
        "title": "Runs on a cluster",
        "seeds": list(range(seeds)),
        "blocks": list(blocks),
        "metrics": ["recall_at_1", "map_at_r"],
        "comparison": {"baseline": "smooth_ap"},
        "resources": {"gpus": 1, "mem_mb": 1500, "minutes": minutes},
    }
