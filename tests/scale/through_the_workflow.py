"""The whole workflow with hundreds of tiny runs, a tenth of which fail: what is kept, named and
done again.

    python tests/scale/through_the_workflow.py [--losses 25] [--seeds 20]

The training is made up (tests/workflow/quick_training), so that what is measured is the workflow
itself. The first pass loses a random tenth of the runs; the second, without the failures, must do
those and no other. Prints the numbers as JSON; the exit status is 1 when one of them is not what it
should be.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from workplace import Workplace, jobs, small_study

STUDY = "scale"
SHARE = 0.1


def wide_study(losses: int, seeds: int) -> dict[str, Any]:
    """Returns a study of ``losses`` variants of one loss with ``seeds`` seeds each."""
    variants = {
        f"tau{number:03d}": {"loss": "smooth_ap", "tau": 0.01 + 0.001 * number}
        for number in range(losses)
    }
    study = small_study(STUDY, list(variants))
    return {**study, "losses": variants, "seeds": list(range(seeds))}


def unlucky(run_id: str) -> bool:
    """Says whether the made-up training fails this run in the first pass."""
    return int(hashlib.sha256(run_id.encode()).hexdigest()[:8], 16) / 2**32 < SHARE


def statuses(place: Workplace) -> dict[str, tuple[str, str]]:
    """Returns {run id: (status, reason)} of the long table."""
    with open(place.folder / "results" / STUDY / "runs.csv", newline="") as stream:
        return {row["run_id"]: (row["status"], row["reason"]) for row in csv.DictReader(stream)}


def timed_pass(place: Workplace) -> tuple[float, dict[str, int], str]:
    """Returns seconds, jobs by rule and output of one run of the workflow up to the report and the
    import."""
    began = time.monotonic()
    done = place.snakemake(STUDY, target="all", hooks=True)
    return time.monotonic() - began, jobs(done), done.stdout + done.stderr


def measure(losses: int, seeds: int) -> dict[str, Any]:
    """Returns the numbers of both passes; ``wrong`` lists what is not as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        place = Workplace(Path(folder))
        place.write(wide_study(losses, seeds))
        total = losses * seeds
        place.environment = {
            "QUICK_TRAINING_FAILING_SHARE": str(SHARE),
            "BENCHMARK_CACHE": f"{folder}/cache",
        }
        first_seconds, _, _ = timed_pass(place)
        found = statuses(place)
        failed = {name for name, (status, _) in found.items() if status == "failed"}
        good = place.results()
        page = (place.folder / "results" / STUDY / "report" / "index.html").read_text()
        unnamed = [
            name for name in failed if name not in page or f"{name}/train.log" not in found[name][1]
        ]

        del place.environment["QUICK_TRAINING_FAILING_SHARE"]
        second_seconds, second_jobs, output = timed_pass(place)
        after = place.results()
        imported = (place.folder / "results" / STUDY / "imported.txt").read_text()
        again_seconds, again_jobs, _ = timed_pass(place)
        checks = {
            "every run has a row": len(found) == total,
            "the chosen tenth failed, and no other": failed
            == {name for name in found if unlucky(name)},
            "every good run is in the table": {
                n for n, (status, _) in found.items() if status == "ok"
            }
            == set(good),
            "good and failed make all": len(good) + len(failed) == total,
            "every failed run is named with its log": not unnamed,
            "the second pass trains the failed runs only": second_jobs.get("train") == len(failed),
            "finished runs stay untouched": {name: after[name] for name in good} == good,
            "in the end every run is there": len(after) == total
            and {status for status, _ in statuses(place).values()} == {"ok"},
            "every run is in MLflow": f"{total} imported" in imported
            or f"{len(failed)} imported, 0 completed, {len(good)} present" in imported,
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
            "import": imported.strip(),
            "wrong": [name for name, right in checks.items() if not right],
            **({"output": output[-3000:]} if not all(checks.values()) else {}),
        }


def main() -> int:
    """Measures, prints, and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--losses", type=int, default=25)
    parser.add_argument("--seeds", type=int, default=20)
    arguments = parser.parse_args()
    numbers = measure(arguments.losses, arguments.seeds)
    print(json.dumps(numbers, indent=2))
    return int(bool(numbers["wrong"]))


if __name__ == "__main__":
    sys.exit(main())
