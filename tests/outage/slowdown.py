"""How much a mirror slows training down: the server well, away, hanging; dying, silenced or without
disk in the middle.

    python tests/outage/slowdown.py [--repeats 3] [--epochs 25] [--only SITUATION]

Each repeat trains the same specification once without a mirror and once in each situation, in an
order that turns by one, so that other load on the machine falls on all alike. Per situation: the
ratio of the times (median, lowest and highest), the share of the run that the training itself
waited for the mirror, and the processor seconds of the helper. The exit status is 1 when a median
ratio reaches 1.05. The full disk is left out, with a word, where this user may not mount a small
one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HELPERS = Path(__file__).resolve().parents[1] / "helpers"
sys.path.insert(0, str(HELPERS))

from mlflow_servers import LocalServer, SmallDiskServer, can_mount, free_port  # noqa: E402
from tiny_runs import tiny_spec, write_spec_in  # noqa: E402

LIMIT = 1.05
WITHOUT = "without a mirror"
FULL = "disk full in the middle"
OTHERS = ("server well", "away", "hanging", "killed in the middle", "silent in the middle", FULL)


def timed_run(spec: Path) -> dict[str, float]:
    """Trains in this process; returns seconds in all, seconds waited for the mirror, and the
    helper's CPU seconds."""
    import resource

    from benchmark.training.mirror import Mirror
    from benchmark.training.run import train

    waited = []

    def timing(method):
        def call(*args):
            began = time.perf_counter()
            try:
                return method(*args)
            finally:
                waited.append(time.perf_counter() - began)

        return call

    begin = Mirror.start
    Mirror.start = timing(begin)
    Mirror.close = timing(Mirror.close)
    began = time.perf_counter()
    train(spec)
    seconds = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"seconds": seconds, "waited": sum(waited), "helper": used.ru_utime + used.ru_stime}


def measure(situation: str, server: LocalServer, epochs: int, middle: float) -> dict[str, float]:
    """Returns ``timed_run`` of a process of its own; ``middle`` is when, in seconds, the server
    fails."""
    spec = tiny_spec(training={"epochs": epochs})
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        if situation != WITHOUT:
            environment |= {"MLFLOW_TRACKING_URI": server.address, "BENCHMARK_STUDY": situation}
        if situation == "away":
            server.stop()
        elif server.process is None or server.process.poll() is not None:
            server.start()
        failures = {"killed in the middle": server.stop, "silent in the middle": server.silence}
        if situation == FULL:
            failures[FULL] = server.fill
        if situation == "hanging":
            server.silence()
        timer = threading.Timer(middle, failures.get(situation, lambda: None))
        timer.start()
        command = [sys.executable, __file__, "--one", str(write_spec_in(Path(folder), spec))]
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        timer.cancel()
        if situation == FULL:
            server.stop()  # its disk goes with it; the next start has an empty one
        elif server.process.poll() is None:
            server.speak()
    return json.loads(done.stdout.splitlines()[-1])


def report(found: dict[str, list[dict[str, float]]]) -> float:
    """Prints one line per situation; returns the highest median ratio."""
    base = [run["seconds"] for run in found[WITHOUT]]
    print(
        f"{WITHOUT}: median {statistics.median(base):.1f} s ({min(base):.1f} to {max(base):.1f}), "
        f"{len(base)} runs"
    )
    medians = []
    for situation in list(found)[1:]:
        runs = found[situation]
        ratios = [run["seconds"] / plain for run, plain in zip(runs, base, strict=True)]
        waited = max(run["waited"] / run["seconds"] for run in runs)
        helper = statistics.median(run["helper"] for run in runs)
        medians.append(statistics.median(ratios))
        print(
            f"{situation + ':':<24} ratio {medians[-1]:.3f} ({min(ratios):.3f} to "
            f"{max(ratios):.3f}), "
            f"waited at most {waited:.2%} of the run, helper {helper:.1f} CPU s"
        )
    return max(medians)


def main() -> int:
    """Measures and reports; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--only", choices=OTHERS, help="measure this situation alone, beside none")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(timed_run(arguments.one)))
        return 0
    others = [arguments.only] if arguments.only else list(OTHERS)
    if FULL in others and not can_mount():
        print(f"left out: {FULL} (this user may not mount a small disk)")
        others.remove(FULL)
    situations = [WITHOUT, *others]
    found: dict[str, list[dict[str, float]]] = {situation: [] for situation in situations}
    with tempfile.TemporaryDirectory() as folder:
        plain = LocalServer(Path(folder) / "server", free_port())
        small = SmallDiskServer(Path(folder) / "small", free_port())
        plain.start()
        try:
            middle = (
                measure(WITHOUT, plain, arguments.epochs, 0.0)["seconds"] / 2
            )  # and fills the caches
            for repeat in range(arguments.repeats):
                turn = repeat % len(situations)
                for situation in situations[turn:] + situations[:turn]:
                    server = small if situation == FULL else plain
                    found[situation].append(measure(situation, server, arguments.epochs, middle))
        finally:
            plain.stop()
            small.stop()
    highest = report(found)
    return int(highest >= LIMIT)


if __name__ == "__main__":
    sys.exit(main())
