"""Kills training runs with SIGKILL at random moments, resumes them, and compares with runs that
nothing disturbed.

    python tests/stress/kill_anywhere.py --kills 20 --seed 0 --losses all --start mixed

Each attempt is killed in one phase (start, step, evaluation, checkpoint write, final write), a
random moment after the run has entered it (``hooks`` say when that is). A run that ends is
compared, bit for bit, with one that was left alone: result.json, the loss curve, the neighbours.
Then the case starts anew, until it has had its kills.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers")]

import numpy as np  # noqa: E402
from cases import cases, with_pictures  # noqa: E402
from tiny_runs import curve, write_spec_in  # noqa: E402

from benchmark.core.records import METRICS, NEIGHBOURS, PROVENANCE, QUERIES, RESULT, SPEC, RunSpec  # noqa: E402
from benchmark.training.fork_server.protocol import OFF, VARIABLE  # noqa: E402
from benchmark.training.fork_server.starter import ForkServer  # noqa: E402

HOOKS, PLUGINS = (Path(__file__).parent / name for name in ("hooks", "plugins"))
# Each phase with the longest time, in seconds, that is waited in it before the kill.
PHASES = {
    "start": 0.3,
    "step": 0.4,
    "evaluation": 0.1,
    "checkpoint write": 0.02,
    "final write": 0.04,
}
# How often a run enters a phase, at least: it is killed at one of these times.
PASSES = {"start": 1, "step": 1, "evaluation": 2, "checkpoint write": 8, "final write": 4}
LEFT_BEHIND = {SPEC, RESULT, METRICS, PROVENANCE, NEIGHBOURS, QUERIES}
LONGEST = 1800.0  # seconds that a run of seconds may take on a busy machine


@dataclass
class Tally:
    """What one case went through."""

    kills: Counter[str] = field(default_factory=Counter)
    attempts: int = 0
    finished: int = 0
    lost: list[str] = field(default_factory=list)


@dataclass
class Killer:
    """Runs ``python -m benchmark train`` and kills it; ``environment`` decides how it starts."""

    phase_file: Path
    environment: dict[str, str]
    chance: random.Random

    def attempt(self, spec: Path, wanted: str = "") -> str | None:
        """Returns the phase in which the run was killed, or None when it ended before that; without
        a phase that is wanted the run is left alone."""
        order = [
            wanted,
            self.chance.randint(1, PASSES.get(wanted, 1)),
            self.chance.uniform(0, PHASES.get(wanted, 0)),
        ]
        self.phase_file.with_name(f"{self.phase_file.name}.order").write_text(json.dumps(order))
        self.phase_file.write_text("other")
        command = [sys.executable, "-m", "benchmark", "train", "--spec", str(spec)]
        with open(spec.parent.parent / "train.log", "ab") as log:
            status = subprocess.run(
                command, env=self.environment, stdout=log, stderr=log, timeout=LONGEST, check=False
            ).returncode
        if status == 0:
            return None
        if status not in (-signal.SIGKILL, 128 + signal.SIGKILL):
            last = Path(log.name).read_text()[-2000:]
            raise RuntimeError(f"{spec}: ended with status {status}; its log ends with\n{last}")
        return self.phase_file.read_text() or "other"  # killed while it noted the next phase


def endure(name: str, spec: RunSpec, kills: int, killers: list[Killer], folder: Path) -> Tally:
    """Returns the tally of one case that was killed ``kills`` times, by the killers in turn."""
    tally = Tally()
    spec = with_pictures(spec, folder / "images")
    whole = folder / "whole"
    killers[-1].attempt(write_spec_in(whole, spec))
    phases = list(PHASES)
    run = folder / "killed"
    path = write_spec_in(run, spec)
    while tally.kills.total() < kills:
        turn = tally.attempts
        if turn > 10 * kills + 20:
            raise RuntimeError(
                f"{name}: {turn} attempts for {tally.kills.total()} kills; is the phase file "
                "written?"
            )
        wanted = phases[turn % len(phases)]
        phase = killers[turn % len(killers)].attempt(path, wanted)
        tally.attempts += 1
        if phase is not None:
            tally.kills[phase] += 1
        else:
            _settle(tally, name, run, whole)
            path = write_spec_in(run, spec)
    killers[-1].attempt(path)
    _settle(tally, name, run, whole)
    return tally


def _settle(tally: Tally, name: str, run: Path, whole: Path) -> None:
    """Counts a run that ended, and clears its folder away."""
    tally.finished += 1
    reasons = differences(run, whole)
    if reasons:
        tally.lost.append(f"{name}, run {tally.finished}: {'; '.join(reasons)}")
    shutil.rmtree(run)


def differences(run: Path, whole: Path) -> list[str]:
    """Returns in what a finished run differs from one that was not disturbed, and what it left
    lying."""
    found = []
    if (run / RESULT).read_bytes() != (whole / RESULT).read_bytes():
        found.append(f"other bits in {RESULT}")
    if curve(run) != curve(whole):
        found.append("another loss curve")
    with np.load(run / NEIGHBOURS) as ours, np.load(whole / NEIGHBOURS) as theirs:
        if any(ours[key].tobytes() != theirs[key].tobytes() for key in theirs):
            found.append("other neighbours")
    left = {path.name for path in run.iterdir()} - LEFT_BEHIND
    return found + [f"left {name} behind" for name in sorted(left)]


@contextlib.contextmanager
def killers_in(folder: Path, start: str, seed: int) -> Iterator[list[Killer]]:
    """Yields one killer for each kind of start: processes of their own, forks, or both."""
    phase_file = folder / "phase"
    phase_file.touch()
    path = os.pathsep.join([str(HOOKS), str(ROOT)])
    before = dict(os.environ)
    os.environ.update(PYTHONPATH=path, BENCHMARK_PLUGINS=str(PLUGINS))
    os.environ.update(STRESS_PHASE=str(phase_file), OMP_NUM_THREADS="1")
    os.environ.setdefault("BENCHMARK_CACHE", str(folder / "cache"))
    os.environ.pop(VARIABLE, None)
    server = ForkServer()
    try:
        found = []
        if start in ("process", "mixed"):
            found.append(Killer(phase_file, {**os.environ, VARIABLE: OFF}, random.Random(seed)))
        if start in ("fork", "mixed"):
            server.start()
            found.append(Killer(phase_file, dict(os.environ), random.Random(seed + 1)))
        yield found
    finally:
        server.stop()
        os.environ.clear()
        os.environ.update(before)


def as_table(tallies: dict[str, Tally], seconds: float) -> str:
    """Returns what happened, a line for each case."""
    whole = Tally(sum((tally.kills for tally in tallies.values()), Counter()))
    whole.finished = sum(tally.finished for tally in tallies.values())
    whole.lost = [reason for tally in tallies.values() for reason in tally.lost]
    lines = [f"{'case':24}{'kills':>7}" + "".join(f"{phase:>18}" for phase in (*PHASES, "other"))]
    lines[0] += f"{'runs':>7}{'lost':>6}"
    for name, tally in {**tallies, "all": whole}.items():
        other = tally.kills.total() - sum(tally.kills[phase] for phase in PHASES)
        counts = "".join(
            f"{count:18}" for count in (*(tally.kills[phase] for phase in PHASES), other)
        )
        lines.append(
            f"{name:24}{tally.kills.total():7}{counts}{tally.finished:7}{len(tally.lost):6}"
        )
    return "\n".join([*lines, *whole.lost, f"{seconds:.0f} s"])


def main() -> None:
    """Runs the command of the module's docstring; exit status 1 when a run was lost."""
    parser = argparse.ArgumentParser(
        description="kill training anywhere, resume, compare bit for bit"
    )
    parser.add_argument("--kills", type=int, default=20, help="kills of each case")
    parser.add_argument("--seed", type=int, default=0, help="seed of the moments")
    parser.add_argument(
        "--losses", nargs="+", default=["all"], help="names of losses or other cases, or all"
    )
    parser.add_argument(
        "--start", choices=("process", "fork", "mixed"), default="mixed", help="kind of processes"
    )
    given = parser.parse_args()
    known = cases()
    chosen = known if given.losses == ["all"] else {name: known[name] for name in given.losses}
    started = time.monotonic()
    tallies = {}
    with (
        tempfile.TemporaryDirectory() as place,
        killers_in(Path(place), given.start, given.seed) as killers,
    ):
        for number, (name, spec) in enumerate(chosen.items()):
            tallies[name] = endure(name, spec, given.kills, killers, Path(place) / str(number))
            phases = ", ".join(
                f"{phase} {count}" for phase, count in sorted(tallies[name].kills.items())
            )
            print(f"{name}: killed in {phases}; {len(tallies[name].lost)} lost", flush=True)
    print(as_table(tallies, time.monotonic() - started))
    sys.exit(1 if any(tally.lost for tally in tallies.values()) else 0)


if __name__ == "__main__":
    main()
