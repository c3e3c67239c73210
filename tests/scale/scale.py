"""The workflow at scale; prints its numbers, and ends with 1 where one is not what it should be.

    python tests/scale/scale.py [--losses 25] [--seeds 20]           500 runs, a tenth of which fail
    python tests/scale/scale.py --planned [--losses 50] [--seeds 50] 1,000 and 10,000 runs, made up
    python tests/scale/scale.py --ready [--losses 100] [--seeds 40]  4,000 runs, all ready at once

Without ``--planned``, the training is made up (tests/workflow/quick_training), so that what is
measured is the workflow itself. The first pass loses a random tenth of the runs; the second,
without the failures, must do those and no other.

With it, every step before and after training is a process of its own, as a person or the workflow
starts it; 'finish' makes all of them in one. What counts are processor seconds, which other load on
the machine hardly changes: ten times the runs may take GROWTH times the seconds of a tenth of them,
and MEMORY_GROWTH times the memory. With ``--ready``, they are those of Snakemake itself, for each
run: what schedules jobs must not look at all that wait whenever one ends.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

import yaml  # noqa: E402
from made_up_records import made_up_provenance, made_up_result  # noqa: E402
from workplace import LOCAL, Workplace, jobs, small_study  # noqa: E402

from benchmark.core.records import METRICS, PROVENANCE, RESULT, SPEC  # noqa: E402
from benchmark.core.results import BestScore, CurvePoint, Metrics  # noqa: E402

STUDY = "scale"
FINISH = "finish"
SHARE = 0.1
STEPS = ("collect", "build")
IMPORT = "track import"
PLAN_SECONDS = 120.0
REPORT_SECONDS = 60.0
MEMORY_MB = 2048.0
GROWTH = 12.0
MEMORY_GROWTH = 6.0
HEAD_SECONDS = 0.05
TICKS = os.sysconf("SC_CLK_TCK")


def wide_study(losses: int, seeds: int, **block: Any) -> dict[str, Any]:
    """Return a study of ``losses`` variants of one loss with ``seeds`` seeds each."""
    variants = {
        f"tau{number:03d}": {"loss": "smooth_ap", "tau": 0.01 + 0.001 * number}
        for number in range(losses)
    }
    study = small_study(STUDY, list(variants))
    study["blocks"][0] |= block
    return {**study, "losses": variants, "seeds": list(range(seeds))}


def unlucky(run_id: str) -> bool:
    """Say whether the made-up training fails this run in the first pass."""
    return int(hashlib.sha256(run_id.encode()).hexdigest()[:8], 16) / 2**32 < SHARE


def statuses(place: Workplace) -> dict[str, tuple[str, str]]:
    """Return {run id: (status, reason)} of the long table."""
    with open(place.folder / "results" / STUDY / "runs.csv", newline="") as stream:
        return {row["run_id"]: (row["status"], row["reason"]) for row in csv.DictReader(stream)}


def timed_pass(place: Workplace) -> tuple[float, dict[str, int]]:
    """Return seconds and jobs by rule of the workflow up to the report and the import."""
    began = time.monotonic()
    done = place.snakemake(STUDY, target="all", hooks=True)
    return time.monotonic() - began, jobs(done)


def through_the_workflow(losses: int, seeds: int) -> dict[str, Any]:
    """Return the numbers of both passes; ``wrong`` lists what is not as it should be."""
    total = losses * seeds
    with tempfile.TemporaryDirectory() as folder:
        place = Workplace(Path(folder))
        place.write(wide_study(losses, seeds))
        place.environment["BENCHMARK_CACHE"] = f"{folder}/cache"
        place.environment["QUICK_TRAINING_FAILING_SHARE"] = str(SHARE)
        first_seconds, _ = timed_pass(place)
        found = statuses(place)
        good = place.results()
        failed = {name for name, (status, _) in found.items() if status == "failed"}
        study = place.folder / "results" / STUDY
        page = (study / "report" / "index.html").read_text()

        del place.environment["QUICK_TRAINING_FAILING_SHARE"]
        second_seconds, second_jobs = timed_pass(place)
        after = place.results()
        last = {status for status, _ in statuses(place).values()}
        imported = (study / "imported.txt").read_text().strip()
        again_seconds, again_jobs = timed_pass(place)
    checks = {
        "every run has a row": len(found) == total,
        "the chosen tenth failed, and no other": failed == set(filter(unlucky, found)),
        "every good run is in the table": {n for n in found if found[n][0] == "ok"} == set(good),
        "good and failed make all": len(good) + len(failed) == total,
        "every failed run is named with its log": all(
            name in page and f"{name}/train.log" in found[name][1] for name in failed
        ),
        "the second pass trains the failed runs only": second_jobs.get("train", 0) == len(failed),
        "finished runs stay untouched": {name: after[name] for name in good} == good,
        "in the end every run is there": len(after) == total and last == {"ok"},
        "every run is in MLflow": f"{total} imported" in imported
        or f"{len(failed)} imported, {len(good)} present" in imported,
        "then nothing is left to do": not again_jobs,
    }
    return {
        "runs": total,
        "failed at first": len(failed),
        "trained again": second_jobs.get("train", 0),
        "first pass, seconds": round(first_seconds, 1),
        "seconds per run": round(first_seconds / total, 3),
        "second pass, seconds": round(second_seconds, 1),
        "nothing to do, seconds": round(again_seconds, 1),
        "import": imported,
        "wrong": [name for name, right in checks.items() if not right],
    }


def finish(run: Any, results: Path) -> None:
    """Write the files of a finished run of four epochs; its numbers follow from its digest."""
    spec = run.spec
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
    folder = results / spec.folder
    spec.write(folder / SPEC)
    result.write(folder / RESULT)
    made_up_provenance(spec).write(folder / PROVENANCE)
    (folder / METRICS).write_text("")


def timed(command: list[str], folder: Path) -> tuple[float, float, float]:
    """Return processor seconds, peak megabytes and seconds on the wall of a command."""
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
        words = (folder / "output.log").read_text()[-3000:]
        raise SystemExit(f"{' '.join(command)} failed:\n{words}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, time.monotonic() - began


def planned(losses: int, seeds: int) -> dict[str, tuple[float, float]]:
    """Return {step: (processor seconds, megabytes)}, printing each on the way."""
    found = {}

    def step(name: str, *command: str) -> None:
        seconds, megabytes, wall = timed([sys.executable, "-m", *command], folder)
        found[name] = seconds, megabytes
        took = f"{seconds:7.1f} CPU s {megabytes:7.0f} MB {wall:7.1f} s on the wall"
        print(f"{name:<28} {took}", flush=True)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        study = folder / f"{STUDY}.yaml"
        sizes = {"datasets": ["glyphs_tiny", "glyphs_1k"], "batch_sizes": [32, 64]}
        study.write_text(yaml.safe_dump(wide_study(losses, seeds, **sizes)))
        os.environ["BENCHMARK_CACHE"] = str(folder / "cache")
        workflow = ["snakemake", "-s", str(ROOT / "workflow/Snakefile"), "--profile", str(LOCAL)]
        workflow += ["--config", f"study={study}", "-n", "--quiet", "all"]
        step("plan, nothing done", "benchmark", "plan", str(study))
        step("snakemake -n, nothing done", *workflow)
        # in a process of its own: a child's peak memory counts that of the process that starts it
        timed([sys.executable, __file__, "--finish", str(study)], folder)
        step("plan, all done", "benchmark", "plan", str(study))
        step("snakemake -n, all done", *workflow)
        for verb in (FINISH, *STEPS):
            step(verb, "benchmark", verb, str(study))
        step(IMPORT, "benchmark", *IMPORT.split(), str(study))
        page = folder / "results" / STUDY / "report" / "index.html"
        print(f"{losses * seeds * 4} runs, report of {page.stat().st_size / 2**20:.1f} MiB")
    return found


def within_bounds(found: dict[str, tuple[float, float]]) -> bool:
    """Say whether planning, 'finish' and the memory of all steps keep their bounds."""
    behind = (FINISH, *STEPS, IMPORT)
    planning = max(seconds for name, (seconds, _) in found.items() if name not in behind)
    memory = max(megabytes for _, megabytes in found.values())
    return planning < PLAN_SECONDS and found[FINISH][0] < REPORT_SECONDS and memory < MEMORY_MB


def grows_little(
    tenth: dict[str, tuple[float, float]], whole: dict[str, tuple[float, float]]
) -> bool:
    """Say whether each step of ten times the runs keeps its bounds, and print by how much."""
    kept = True
    for name, (seconds, megabytes) in whole.items():
        growth = seconds / tenth[name][0]
        memory = megabytes / tenth[name][1]
        print(f"{name:<28} {growth:7.1f} times the seconds {memory:7.1f} times the memory")
        kept &= growth <= GROWTH and memory <= MEMORY_GROWTH
    return kept


def head_seconds(losses: int, seeds: int, *options: str) -> float:
    """Return Snakemake's own processor seconds for each run of a study whose runs are all ready."""
    total = losses * seeds
    with tempfile.TemporaryDirectory() as folder:
        place = Workplace(Path(folder))
        place.write(wide_study(losses, seeds))
        place.environment["BENCHMARK_CACHE"] = f"{folder}/cache"
        command = [sys.executable, "-m", "snakemake", "runs", *place.arguments(STUDY), *options]
        with open(f"{folder}/output.log", "w") as log:
            process = subprocess.Popen(
                command, cwd=folder, env=place.variables, stdout=log, stderr=log
            )
        ticks = 0
        while process.poll() is None:
            with suppress(ProcessLookupError, FileNotFoundError):
                fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
                ticks = int(fields[11]) + int(fields[12])  # without its children
            time.sleep(0.2)
        done = len(place.results())
        if done != total:
            words = Path(folder, "output.log").read_text()[-3000:]
            raise SystemExit(f"{done} of {total} runs have a result:\n{words}")
    return ticks / TICKS / total


def main() -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--planned", action="store_true", help="plan and report made-up runs")
    parser.add_argument("--ready", action="store_true", help="schedule runs that are all ready")
    parser.add_argument("--losses", type=int)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--finish", type=Path, help=argparse.SUPPRESS)
    asked, options = parser.parse_known_args()
    if asked.finish:
        from benchmark.study import load_study
        from benchmark.study.grid import expand

        for run in expand(load_study(str(asked.finish))).values():
            finish(run, asked.finish.parent / "results")
        return 0
    if asked.planned:
        losses, seeds = asked.losses or 50, asked.seeds or 50
        tenth = planned(losses, seeds // 10)
        whole = planned(losses, seeds)
        return int(not (within_bounds(whole) and grows_little(tenth, whole)))
    if asked.ready:
        seconds = head_seconds(asked.losses or 100, asked.seeds or 40, *options)
        print(f"{seconds:.3f} processor seconds of Snakemake for each run")
        return int(seconds > HEAD_SECONDS)
    numbers = through_the_workflow(asked.losses or 25, asked.seeds or 20)
    print(json.dumps(numbers, indent=2))
    return int(bool(numbers["wrong"]))


if __name__ == "__main__":
    sys.exit(main())
