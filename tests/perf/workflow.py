"""What a study costs beside training and evaluation: start-up of runs, Snakemake, tracking, collecting, reporting."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

import benchmark
from benchmark.core.records import PROVENANCE, RESULTS, SPEC
from perf.sections import Row, Section, load
from perf.turns import seconds_of

ROOT = Path(benchmark.__file__).resolve().parents[1]
CONFIG = ROOT / "workflow" / "config"
SMOKE, EMBEDDED = "smoke", "embedded"
# Set for the measuring process alone: a person's workflow gets its threads from the recipe.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def section(out: Path, *, quick: bool, show: Callable[[str], None]) -> Section:
    """Measures the start-up of a run by itself and, unless ``quick``, studies from nothing to the report: ``smoke``
    with one seed, and some runs of ``embedded``."""
    rows: list[Row] = []

    def add(what: str, value: float, unit: str) -> None:
        rows.append({"what": what, "value": value, "unit": unit, "load": round(load(), 2)})
        show(f"  {what:<64} {value:8.3g} {unit}")

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        add(
            "start-up of a run by itself, command to first step",
            cold_startup(folder / "alone"),
            "s",
        )
        for study, losses in () if quick else ((SMOKE, None), (EMBEDDED, 2)):
            found = study_share(folder / study, study, losses, [0])
            label = f"study {study}, {found['runs']} runs"
            add(f"{label}, from nothing to the report", found["wall"], "s")
            add(f"{label}, share of the cores' time that trains or evaluates", found["useful"], "")
            add(f"{label}, start-up of a run, forked", found["startup"], "s")
            add(
                f"{label}, overhead of a run: all but training and evaluation",
                found["overhead"],
                "s of a core",
            )
            add(f"{label}, of which outside of its process", found["outside"], "s of a core")
    note = (
        f"Each study (none if quick) runs in a folder of its own on {cores()} cores, with Snakemake, tracking, "
        "collecting and the report. The runs of smoke take a few seconds each, so that its overhead weighs most; of "
        "the embedded study only some runs are done, so that what a study costs once is shared by fewer runs than in "
        "the whole study, whose provenance gives its own share. "
        "Planning of 10,000 runs and a report over them are measured by `tests/scale/ten_thousand_runs.py`."
    )
    return Section("workflow", "Overhead of the workflow", note, rows)


def study_share(folder: Path, name: str, losses: int | None, seeds: list[int]) -> dict[str, float]:
    """Returns ``share_of_useful_time`` of a study in ``folder``, with ``wall``: its first ``losses`` (None: all) in
    the first block, with these seeds."""
    folder.mkdir(parents=True)
    study = yaml.safe_load((CONFIG / f"{name}.yaml").read_text(encoding="utf-8"))
    study = shortened(study, losses, seeds)
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    wall = _snakemake(folder, f"{name}.yaml")
    return {**share_of_useful_time(folder / RESULTS, wall, cores()), "wall": wall}


def shortened(study: dict[str, Any], losses: int | None, seeds: list[int]) -> dict[str, Any]:
    """Returns the first block of a study with its first ``losses`` and these seeds, without claims on the rest."""
    block = {key: value for key, value in study["blocks"][0].items() if key != "seeds"}
    block["losses"] = block["losses"][:losses]
    return {
        "study": study["study"],
        "title": study["title"],
        "question": study["question"],
        "seeds": seeds,
        "losses": {
            name: study["losses"][name]
            for name in block["losses"]
            if name in study.get("losses", {})
        },
        "blocks": [block],
        "metrics": study["metrics"],
        "comparison": {"baseline": block["losses"][0]},
        "resources": study.get("resources", {}),
    }


def cold_startup(folder: Path) -> float:
    """Returns the seconds from the command to the first step of one run of ``smoke`` in ``folder``."""
    folder.mkdir(parents=True)
    _run([sys.executable, "-m", "benchmark", "specs", SMOKE], folder)
    spec = sorted((folder / RESULTS).glob(f"runs/*/*/*/*/*/{SPEC}"))[0]
    out = folder / "out"
    command = [sys.executable, "-m", "benchmark", "train", "--spec", str(spec), "--out", str(out)]
    _run(command, folder, BENCHMARK_WARM="off")
    return json.loads((out / PROVENANCE).read_text())["timing"]["startup_seconds"]


def cores() -> int:
    """Returns the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def share_of_useful_time(results: Path, wall_seconds: float, cores: int) -> dict[str, float]:
    """Returns what the runs below ``results`` spent, by their provenance, against ``wall_seconds`` on ``cores``.

    runs            how many there are
    useful          share of the cores' time that trained or evaluated
    startup         mean seconds from a command's start to its first step
    overhead        mean seconds of a core per run that neither train nor evaluate
    outside         of these, what no run accounts for: Snakemake, collecting, the report, idle cores
    """
    timings = [
        json.loads(path.read_text())["timing"]
        for path in sorted(results.glob(f"runs/*/*/*/*/*/{PROVENANCE}"))
    ]
    if not timings:
        raise FileNotFoundError(f"no finished run below {results}")
    useful = sum(timing["train_seconds"] + timing["eval_seconds"] for timing in timings)
    known = sum(timing["total_seconds"] for timing in timings)
    return {
        "runs": len(timings),
        "useful": useful / (wall_seconds * cores),
        "startup": sum(timing["startup_seconds"] for timing in timings) / len(timings),
        "overhead": (wall_seconds * cores - useful) / len(timings),
        "outside": max(wall_seconds * cores - known, 0.0) / len(timings),
    }


def _snakemake(folder: Path, study: str) -> float:
    """Returns the seconds of a workflow in ``folder``, which must succeed."""
    profile = ROOT / "workflow" / "profiles" / "local"
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--snakefile",
        str(ROOT / "Snakefile"),
        "--profile",
        str(profile),
    ]
    return _run([*command, "--config", f"study={study}"], folder)


def _run(command: list[str], folder: Path, **variables: str) -> float:
    """Returns the seconds of a command of this project in ``folder``; RuntimeError with its last words if it fails."""
    environment = {
        name: value for name, value in os.environ.items() if name not in THREADS
    } | variables
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])

    def run() -> None:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")

    return seconds_of(run)
