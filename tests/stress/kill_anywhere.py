"""Kills training runs with SIGKILL at random moments, resumes them, and compares with runs that
nothing disturbed.

Each attempt is killed in one phase (start, step, evaluation, checkpoint write, final write), a
random moment after the run has entered it (``hooks`` say when that is). A run that ends is
compared, bit for bit, with one that was left alone: result.json, the loss curve, the neighbours.
Then the case starts anew, until it has had its kills.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from cases import with_pictures
from tiny_runs import curve, write_spec_in

from benchmark.core.records import METRICS, NEIGHBOURS, PROVENANCE, QUERIES, RESULT, SPEC, RunSpec
from benchmark.training.fork_server import OFF, VARIABLE, ForkServer

ROOT = Path(__file__).resolve().parents[2]
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
def killers_in(folder: Path, seed: int) -> Iterator[list[Killer]]:
    """Yields one killer of processes of their own, and one of forks."""
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
        cold = Killer(phase_file, {**os.environ, VARIABLE: OFF}, random.Random(seed))
        server.start()
        yield [cold, Killer(phase_file, dict(os.environ), random.Random(seed + 1))]
    finally:
        server.stop()
        os.environ.clear()
        os.environ.update(before)
