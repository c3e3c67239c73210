"""What a study costs beside training and evaluation: start-up, Snakemake, tracking, the report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

import benchmark
from benchmark.core.environment import available_cores
from benchmark.core.records import PROVENANCE, RESULTS, SPEC
from perf.interleave import seconds_of
from perf.sections import Measurement, Section, load

ROOT = Path(benchmark.__file__).resolve().parents[1]
CONFIG = ROOT / "workflow" / "config"
# set for the measuring process alone: a workflow gets its threads from the recipe
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
RUNS = "runs/*/*/*/*/*"
SHARES = {  # of ``study_share``: words, unit
    "wall": ("from nothing to the report", "s"),
    "useful": ("share of the cores' time that trains or evaluates", ""),
    "startup": ("start-up of a run, forked", "s"),
    "overhead": ("overhead of a run: all but training and evaluation", "s of a core"),
    "outside": ("of which outside of its process", "s of a core"),
}


def section(out: Path, *, quick: bool, show: Callable[[str], None]) -> Section:
    """Measure the start-up of a run and, unless ``quick``, studies from nothing to the report."""
    measurements = []

    def add(what: str, value: float, unit: str) -> None:
        row = {"what": what, "value": value, "unit": unit, "load": round(load(), 2)}
        measurements.append(Measurement(row))
        show(f"  {what:<64} {value:8.3g} {unit}")

    with tempfile.TemporaryDirectory() as name:
        alone = cold_startup(Path(name) / "alone")
        add("start-up of a run by itself, command to first step", alone, "s")
        for study, losses in () if quick else (("smoke", None), ("embedded", 2)):
            share = study_share(Path(name) / study, study, losses, [0])
            for key, (what, unit) in SHARES.items():
                add(f"study {study}, {share['runs']} runs, {what}", share[key], unit)
    note = (
        f"Each study (none if quick) runs in a folder of its own on {available_cores()} cores, "
        "with Snakemake, tracking, collecting and the report."
    )
    return Section("workflow", "Overhead of the workflow", note, measurements)


def study_share(
    folder: Path, name: str, losses: int | None, seeds: Sequence[int]
) -> dict[str, float]:
    """Return ``share_of_useful_time`` and the ``wall`` seconds of a shortened study."""
    folder.mkdir(parents=True)
    study = shortened(yaml.safe_load((CONFIG / f"{name}.yaml").read_text()), losses, seeds)
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    profile = ROOT / "workflow" / "profiles" / "local"
    command = ["snakemake", "--snakefile", ROOT / "Snakefile", "--profile", profile]
    wall = seconds_of(lambda: _run([*command, "--config", f"study={name}.yaml"], folder))
    return {**share_of_useful_time(folder / RESULTS, wall, available_cores()), "wall": wall}


def shortened(study: dict[str, Any], losses: int | None, seeds: Sequence[int]) -> dict[str, Any]:
    """Return the first block of a study with its first losses and these seeds, without claims."""
    block = {key: value for key, value in study["blocks"][0].items() if key != "seeds"}
    block["losses"] = block["losses"][:losses]
    variants = study.get("losses", {})
    return {
        **{key: study[key] for key in ("study", "title", "question", "metrics")},
        "seeds": list(seeds),
        "losses": {name: variants[name] for name in block["losses"] if name in variants},
        "blocks": [block],
        "comparison": {"baseline": block["losses"][0]},
        "resources": study.get("resources", {}),
    }


def cold_startup(folder: Path) -> float:
    """Return the seconds from the command to the first step of one run of ``smoke``."""
    folder.mkdir(parents=True)
    _run(["benchmark", "specs", "smoke"], folder)
    spec = min((folder / RESULTS).glob(f"{RUNS}/{SPEC}"))
    _run(
        ["benchmark", "train", "--spec", spec, "--out", "out"], folder, BENCHMARK_FORK_SERVER="off"
    )
    timing = json.loads((folder / "out" / PROVENANCE).read_text())["timing"]
    return timing["startup_seconds"]


def share_of_useful_time(results: Path, wall_seconds: float, cores: int) -> dict[str, float]:
    """Return how the runs below ``results`` used ``wall_seconds`` on ``cores``.

    runs            how many there are
    useful          share of the cores' time that trained or evaluated
    startup         mean seconds from a command's start to its first step
    overhead        mean seconds of a core per run that neither train nor evaluate
    outside         of these, outside of any run: Snakemake, collecting, the report, idle cores
    """
    paths = sorted(results.glob(f"{RUNS}/{PROVENANCE}"))
    timings = [json.loads(path.read_text())["timing"] for path in paths]
    if not timings:
        raise FileNotFoundError(f"no finished run below {results}")
    useful = sum(timing["train_seconds"] + timing["eval_seconds"] for timing in timings)
    in_runs = sum(timing["total_seconds"] for timing in timings)
    available = wall_seconds * cores
    return {
        "runs": len(timings),
        "useful": useful / available,
        "startup": sum(timing["startup_seconds"] for timing in timings) / len(timings),
        "overhead": (available - useful) / len(timings),
        "outside": max(available - in_runs, 0.0) / len(timings),
    }


def _run(module: Sequence[str | Path], folder: Path, **variables: str) -> None:
    """Run ``python -m`` of a module with arguments; raise RuntimeError if it fails."""
    environment = {key: value for key, value in os.environ.items() if key not in THREADS}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", *map(str, module)]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
