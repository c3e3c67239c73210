"""Time and memory of every step before and after training, for a study of 10,000 runs whose results
are made up.

    python tests/scale/ten_thousand_runs.py [--losses 50] [--seeds 50]

Every step is a process of its own, as a person or the workflow starts it; 'finish' makes all of
them in one. Prints one line per step; the exit status is 1 when planning takes 2 minutes, or
'finish', from the run folders to the report, takes 60 seconds, or any of them 2 GiB. What counts
are processor seconds, which other load on the machine hardly changes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

import yaml  # noqa: E402
from made_up_records import made_up_provenance, made_up_result  # noqa: E402
from workplace import LOCAL, small_study  # noqa: E402

from benchmark.core.records import METRICS, PROVENANCE, RESULT, SPEC  # noqa: E402
from benchmark.core.results import BestScore, CurvePoint, Metrics  # noqa: E402

STUDY, FINISH = "scale", "finish"
STEPS = ("collect", "build")
PLAN_SECONDS, REPORT_SECONDS, MEMORY_MB = 120.0, 60.0, 2048.0


def wide_study(losses: int, seeds: int) -> dict[str, Any]:
    """Returns a study of two datasets, two batch sizes, and so many variants of one loss and
    seeds."""
    variants = {
        f"tau{number:03d}": {"loss": "smooth_ap", "tau": 0.01 + 0.001 * number}
        for number in range(losses)
    }
    study = small_study(STUDY, list(variants))
    study["blocks"][0] |= {"datasets": ["glyphs_tiny", "glyphs_1k"], "batch_sizes": [32, 64]}
    return {**study, "losses": variants, "seeds": list(range(seeds))}


def finish(run: Any, results: Path) -> None:
    """Writes the files of a finished run of four epochs; its numbers follow from its digest."""
    spec = run.spec
    folder = results / spec.folder
    share = int(run.digest[:4], 16) / 65536
    values = [0.5 + 0.02 * epoch + 0.01 * share for epoch in range(1, 5)]
    scores = [{"recall_at_1": value, "map_at_r": value / 2, "map": value / 2} for value in values]
    best = {name: BestScore(value, 4) for name, value in scores[-1].items()}
    result = made_up_result(
        spec,
        epochs=4,
        steps=40,
        metrics=Metrics({"test": scores[-1]}, {"test": best}),
        curve=[CurvePoint(epoch, 1 / epoch, {"test": scores[epoch - 1]}) for epoch in range(1, 5)],
    )
    spec.write(folder / SPEC)
    result.write(folder / RESULT)
    made_up_provenance(spec).write(folder / PROVENANCE)
    (folder / METRICS).write_text("")


def timed(command: list[str], folder: Path) -> tuple[float, float, float]:
    """Returns processor seconds, peak megabytes and seconds on the wall of a command, which must
    succeed."""
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        silence = os.open(folder / "output.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        os.environ["PYTHONPATH"] = str(ROOT)
        os.execv(command[0], command)
    _, status, used = os.wait4(child, 0)
    if status:
        raise SystemExit(
            f"{' '.join(command)} failed:\n{(folder / 'output.log').read_text()[-3000:]}"
        )
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, time.monotonic() - began


def measure(losses: int, seeds: int) -> dict[str, tuple[float, float]]:
    """Returns {step: (processor seconds, megabytes)}, printing each on the way."""
    found = {}

    def step(name: str, *command: str) -> None:
        seconds, megabytes, wall = timed([sys.executable, "-m", *command], folder)
        found[name] = seconds, megabytes
        print(
            f"{name:<28} {seconds:7.1f} CPU s {megabytes:7.0f} MB {wall:7.1f} s on the wall",
            flush=True,
        )

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        study = folder / f"{STUDY}.yaml"
        study.write_text(yaml.safe_dump(wide_study(losses, seeds)))
        os.environ["BENCHMARK_CACHE"] = str(folder / "cache")
        workflow = (
            "snakemake",
            "--snakefile",
            str(ROOT / "Snakefile"),
            "--profile",
            str(LOCAL),
            "--config",
        )
        workflow += (f"study={study}", "-n", "--quiet", "all")
        step("plan, nothing done", "benchmark", "plan", str(study))
        step("snakemake -n, nothing done", *workflow)
        # in a process of its own: a child's peak memory counts that of the process that starts it
        timed([sys.executable, __file__, "--finish", str(study)], folder)
        step("plan, all done", "benchmark", "plan", str(study))
        step("snakemake -n, all done", *workflow)
        step(FINISH, "benchmark", FINISH, str(study))
        for verb in STEPS:
            step(verb, "benchmark", verb, str(study))
        page = folder / "results" / STUDY / "report" / "index.html"
        print(f"{losses * seeds * 4} runs, report of {page.stat().st_size / 2**20:.1f} MiB")
    return found


def main() -> int:
    """Measures, prints, and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--losses", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--finish", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.finish:
        from benchmark.study import load_study
        from benchmark.study.grid import expand

        for run in expand(load_study(str(arguments.finish))).values():
            finish(run, arguments.finish.parent / "results")
        return 0
    found = measure(arguments.losses, arguments.seeds)
    together = sum(found[verb][0] for verb in STEPS)
    print(
        f"from run folders to the report: {found[FINISH][0]:.1f} CPU s, each in its own process: "
        f"{together:.1f}"
    )
    planning = max(seconds for name, (seconds, _) in found.items() if name not in (FINISH, *STEPS))
    memory = max(megabytes for _, megabytes in found.values())
    return int(
        planning >= PLAN_SECONDS or found[FINISH][0] >= REPORT_SECONDS or memory >= MEMORY_MB
    )


if __name__ == "__main__":
    sys.exit(main())
