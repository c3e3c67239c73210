"""What a study costs beside training and evaluation: start-up of runs, Snakemake, tracking, collecting, reporting."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

import benchmark
from benchmark.records import PROVENANCE, RESULTS

ROOT = Path(benchmark.__file__).resolve().parents[1]
STUDY = "smoke"
USEFUL_TARGET = 0.85  # share of the processor time of the embedded study that trains or evaluates
PLAN_TARGET = 120.0  # seconds to plan 10,000 runs
PLANNED = 10_000


def measure_workflow(quick: bool) -> list[dict[str, Any]]:
    """Returns rows of ``what, value, unit, target, load`` (target None where there is none).

    The study ``smoke`` is run to its report in a folder of its own; its runs take a few seconds each, so that its
    overhead is the largest there is. Unless ``quick``, 10,000 runs are planned too.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = _smoke_rows(folder)
        if not quick:
            seconds = plan_seconds(folder, PLANNED)
            rows.append(_row(f"snakemake -n, {PLANNED:,} runs", seconds, "s", PLAN_TARGET))
        return rows


def share_of_useful_time(results: Path, wall_seconds: float, cores: int) -> dict[str, float]:
    """Returns what the runs below ``results`` spent, by their provenance, against ``wall_seconds`` on ``cores``.

    runs            how many there are
    useful          share of the cores' time that trained or evaluated
    startup         mean seconds from a command's start to its first step
    outside         mean seconds per run that no run accounts for: Snakemake, tracking, collecting, the report
    """
    timings = [json.loads(path.read_text())["timing"] for path in sorted(results.glob(f"runs/*/*/*/*/*/{PROVENANCE}"))]
    if not timings:
        raise FileNotFoundError(f"no finished run below {results}")
    useful = sum(timing["train_seconds"] + timing["eval_seconds"] for timing in timings)
    known = sum(timing["total_seconds"] for timing in timings)
    return {
        "runs": len(timings),
        "useful": useful / (wall_seconds * cores),
        "startup": sum(timing["startup_seconds"] for timing in timings) / len(timings),
        "outside": max(wall_seconds * cores - known, 0.0) / len(timings),
    }


def plan_seconds(folder: Path, runs: int) -> float:
    """Returns the seconds that ``snakemake -n`` takes for a study of ``runs`` runs of which none is done."""
    seeds = 50
    variants = {
        f"tau{number:03d}": {"loss": "smooth_ap", "tau": 0.01 + 0.001 * number} for number in range(runs // seeds)
    }
    block = {"datasets": ["glyphs_tiny"], "recipe": "glyphs_smoke", "losses": list(variants), "batch_sizes": [32]}
    study = {
        "study": "wide",
        "title": "Many runs",
        "seeds": list(range(seeds)),
        "losses": variants,
        "blocks": [{"name": "main", **block}],
        "metrics": ["recall_at_1"],
        "comparison": {"baseline": next(iter(variants))},
    }
    (folder / "wide.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    return _snakemake(folder, "wide.yaml", "-n", "--quiet", "all")


def _smoke_rows(folder: Path) -> list[dict[str, Any]]:
    cores = len(os.sched_getaffinity(0))
    wall = _snakemake(folder, STUDY)
    found = share_of_useful_time(folder / RESULTS, wall, cores)
    return [
        _row(f"study {STUDY}, {found['runs']} runs to the report on {cores} cores", wall, "s", None),
        _row(f"study {STUDY}, share that trains or evaluates", found["useful"], "", None),
        _row("start-up of a run, command to first step", found["startup"], "s", None),
        _row("outside of runs, per run and core", found["outside"], "s", None),
    ]


def _row(what: str, value: float, unit: str, target: float | None) -> dict[str, Any]:
    return {"what": what, "value": value, "unit": unit, "target": target, "load": os.getloadavg()[0]}


def _snakemake(folder: Path, study: str, *arguments: str) -> float:
    """Returns the seconds of a workflow in ``folder``, which must succeed."""
    profile = ROOT / "workflow" / "profiles" / "local"
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--profile", str(profile)]
    command += ["--config", f"study={study}", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return time.perf_counter() - started
