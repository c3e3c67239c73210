"""Prints what a Slurm job costs beyond its run.

    tests/cluster/one_node.sh with .venv/bin/python tests/cluster/overhead.py

Twenty runs that take no time themselves, as single jobs, as one job array, and four to a job.
Snakemake looks at its jobs every second here; a real profile's slower looks come on top, once for a
whole study and not for each run.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from checkout import Checkout, block, study

RUNS = 20
MEMORY = 700  # MB: in an array both Snakemakes of a task share one step, and its limit
WAYS = {
    "single jobs": [],
    "one array": ["--slurm-array-jobs", "train"],
    "four to a job": ["--groups", "train=runs", "--group-components", "runs=4", "--cores", "1"],
}


def measure(way: str, folder: Path) -> str:
    """Returns one line: jobs, seconds for all, median seconds from submission to start and from
    start to end."""
    checkout = Checkout(folder)
    checkout.environment["CLUSTER_QUICK"] = "yes"
    checkout.change_profile({"retries": 0})  # a job tried again would pass for slowness
    checkout.write(
        study(block("main", ["smooth_ap"], resources={"gpus": 0, "mem_mb": MEMORY}), seeds=RUNS)
    )
    try:
        started = time.monotonic()
        status = checkout.run("small", "runs", *WAYS[way])
        seconds = time.monotonic() - started
        if status:
            sys.exit(checkout.said())
        jobs = checkout.jobs()
    finally:
        checkout.close()
    times = [
        [datetime.fromisoformat(job[key]) for key in ("SubmitTime", "StartTime", "EndTime")]
        for job in jobs
    ]
    waiting = statistics.median(
        (start - submitted).total_seconds() for submitted, start, _ in times
    )
    running = statistics.median((end - start).total_seconds() for _, start, end in times)
    return (
        f"{way:>14} {len(jobs):>5} {seconds:>8.1f} {seconds / RUNS:>8.2f} {waiting:>8.0f} "
        f"{running:>8.0f}"
    )


if __name__ == "__main__":
    print(
        f"{'':>14} {'jobs':>5} {'all':>8} {'per run':>8} {'waits':>8} {'runs':>8}   (seconds, "
        f"{RUNS} runs, 4 at a time)"
    )
    with tempfile.TemporaryDirectory() as folder:
        for number, way in enumerate(WAYS):
            print(measure(way, Path(folder) / str(number)), flush=True)
