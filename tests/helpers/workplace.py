"""Snakemake in a folder of its own, with a training that takes no time.

As a program it makes dry runs in forks of one process, which imports what they need once: it reads
one line a dry run (folder and arguments, as JSON) and answers with one line: its exit status and
what it printed, as JSON.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

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
        """The folder of all runs."""
        return self.folder / "results" / "runs"

    def write(self, study: dict[str, Any]) -> None:
        """Write a study file."""
        (self.folder / f"{study['study']}.yaml").write_text(yaml.safe_dump(study, sort_keys=False))

    def snakemake(
        self, study: str, *arguments: str, target: str = "", hooks: bool = False
    ) -> subprocess.CompletedProcess:
        """Return Snakemake, finished, up to runs.csv or to ``target`` ("all": to the end)."""
        targets = [target] if target else up_to_the_tables(study)
        command = [sys.executable, "-m", "snakemake", *targets]
        command += [*self.arguments(study), *([] if hooks else ["--no-hooks"]), *arguments]
        return run_in(self.folder, command, self.variables)

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
        """The variables of Snakemake's process."""
        path = os.pathsep.join([str(QUICK), str(self.code)])
        return {**os.environ, "PYTHONPATH": path, **self.environment}

    def results(self) -> dict[str, tuple[int, bytes]]:
        """Return time of change and content of every result by run id."""
        return {
            str(path.parent.relative_to(self.runs)): (path.stat().st_mtime_ns, path.read_bytes())
            for path in self.runs.glob("*/*/*/*/*/result.json")
        }


def run_in(
    folder: Path, command: list[str], variables: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Return a finished command, with all that it said."""
    words: dict[str, Any] = {"capture_output": True, "text": True, "check": False}
    return subprocess.run(command, cwd=folder, env=variables, timeout=STUCK, **words)


def up_to_the_tables(study: str) -> list[str]:
    """Return the targets of all runs and the table of them."""
    return ["runs", f"results/{study}/runs.csv"]


def jobs(process: subprocess.CompletedProcess) -> dict[str, int]:
    """Return the job counts by rule in what Snakemake printed."""
    lines = (process.stdout + process.stderr).splitlines()
    counts = {}
    for start in (number for number, line in enumerate(lines) if line.startswith("Job stats:")):
        for line in lines[start + 3 :]:
            parts = line.split()
            if len(parts) != 2 or not parts[1].isdigit():
                break
            counts[parts[0]] = int(parts[1])
    return counts


NEEDED = ("snakemake.cli", "benchmark.verdicts.printed")


class DryRuns:
    """Make dry runs with these variables; a context manager."""

    def __init__(self, environment: dict[str, str]) -> None:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        command = [sys.executable, __file__]
        self._program = subprocess.Popen(command, env=environment, text=True, **pipes)

    def __enter__(self) -> DryRuns:
        return self

    def __exit__(self, *_: object) -> None:
        self._program.communicate()

    def ask(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Return the finished ``snakemake --dry-run`` in a folder; all it printed is stdout."""
        assert self._program.stdin
        assert self._program.stdout
        asked = [str(folder), ["--dry-run", *arguments]]
        print(json.dumps(asked), file=self._program.stdin, flush=True)
        status, printed = json.loads(self._program.stdout.readline())
        return subprocess.CompletedProcess(asked[1], status, printed, "")


def _dry_run(folder: str, arguments: list[str], printed: Path) -> None:
    from snakemake.cli import main

    os.chdir(folder)
    with open(printed, "wb") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    main(arguments)


def _serve() -> None:
    for name in NEEDED:
        __import__(name)
    fork: Any = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        printed = Path(folder) / "printed"
        for line in sys.stdin:
            process = fork.Process(target=_dry_run, args=(*json.loads(line), printed))
            process.start()
            process.join()
            print(json.dumps([process.exitcode, printed.read_text()]), flush=True)


if __name__ == "__main__":
    _serve()
