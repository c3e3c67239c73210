"""What a study costs beside training and evaluation: start-up, Snakemake, tracking, the report.

The study ``smoke``, whose runs take seconds, so that the rest weighs most (not if quick).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmark.core.environment import available_cores
from benchmark.core.records import PROVENANCE, RESULTS, SPEC
from perf.timing import Row, load, seconds_of

ROOT = Path(__file__).resolve().parents[2]
RUNS = "runs/*/*/*/*/*"
# set for the measuring process alone: a workflow gets its threads from the recipe
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def rows(quick: bool) -> Iterator[Row]:
    """Measure the start-up of a run and, unless ``quick``, what a study costs."""
    with tempfile.TemporaryDirectory() as name:
        alone = cold_startup(Path(name) / "alone")
        yield {"what": "start-up of a run by itself, s", "value": alone, "load": load()}
        shares = {} if quick else study_share(Path(name) / "smoke")
        for what, value in shares.items():
            yield {"what": f"study smoke: {what}", "value": value, "load": load()}


def cold_startup(folder: Path) -> float:
    """Return the seconds from the command to the first step of one run of ``smoke``."""
    folder.mkdir(parents=True)
    _run(["benchmark", "specs", "smoke"], folder)
    spec = min((folder / RESULTS).glob(f"{RUNS}/{SPEC}"))
    command = ["benchmark", "train", "--spec", spec, "--out", "out"]
    _run(command, folder, BENCHMARK_FORK_SERVER="off")
    timing = json.loads((folder / "out" / PROVENANCE).read_text())["timing"]
    return float(timing["startup_seconds"])


def study_share(folder: Path) -> dict[str, float]:
    """Return what the study ``smoke`` costs from nothing to the report."""
    folder.mkdir(parents=True)
    command = ["snakemake", "--snakefile", ROOT / "Snakefile", "--config", "study=smoke"]
    command += ["--profile", ROOT / "workflow" / "profiles" / "local"]
    wall = seconds_of(lambda: _run(command, folder))
    paths = (folder / RESULTS).glob(f"{RUNS}/{PROVENANCE}")
    timings = [json.loads(path.read_text())["timing"] for path in paths]
    useful = sum(timing["train_seconds"] + timing["eval_seconds"] for timing in timings)
    in_runs, available = sum(each["total_seconds"] for each in timings), wall * available_cores()
    return {
        "runs": len(timings),
        "from nothing to the report, s": wall,
        "share of the cores' time that trains or evaluates": useful / available,
        "overhead of a run, s of a core": (available - useful) / len(timings),
        "of which outside of its process": max(available - in_runs, 0.0) / len(timings),
    }


def _run(module: Sequence[str | Path], folder: Path, **variables: str) -> None:
    """Run ``python -m`` of a module with arguments."""
    environment = {key: value for key, value in os.environ.items() if key not in THREADS}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", *map(str, module)]
    subprocess.run(command, cwd=folder, env=environment | variables, check=True, stdout=2)
