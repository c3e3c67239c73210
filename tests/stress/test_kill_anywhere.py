"""SIGKILL at random moments costs time and nothing else: every loss, memory, sampler, micro-batches
and files. So does SIGTERM to every process of a run.

Each attempt is killed in one phase, a random moment after the run has entered it (``hooks`` say
when that is). A run that ends is compared, bit for bit, with one that was left alone: result.json,
the loss curve, the neighbours. Then the case starts anew, until it has had its kills.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from archives import save
from tiny_runs import curve, tiny_spec, train_command, write_spec_in

from benchmark.core.interrupts import EXIT_INTERRUPTED
from benchmark.core.records import (
    METRICS,
    NEIGHBOURS,
    PROVENANCE,
    QUERIES,
    RESULT,
    SPEC,
    DatasetChoice,
    RunSpec,
)
from benchmark.input.samplers import SAMPLERS
from benchmark.losses import LOSSES
from benchmark.training.fork_server import OFF, VARIABLE, ForkServer

pytestmark = pytest.mark.stress
KILLS = int(os.environ.get("STRESS_KILLS", "5"))
ROOT = Path(__file__).resolve().parents[2]
HOOKS, PLUGINS = (Path(__file__).parent / name for name in ("hooks", "plugins"))
# Each phase: the longest time, in seconds, that is waited in it before the kill, and how often a
# run enters it, at least: it is killed at one of these times.
PHASES = {
    "start": (0.3, 1),
    "step": (0.4, 1),
    "evaluation": (0.1, 2),
    "checkpoint write": (0.02, 8),
    "final write": (0.04, 4),
}
LEFT_BEHIND = {SPEC, RESULT, METRICS, PROVENANCE, NEIGHBOURS, QUERIES}
LONGEST = 1800.0  # seconds that a run of seconds may take on a busy machine

# Two epochs, and a checkpoint after every step, so that a kill finds something to tear.
TRAINING = {"epochs": 2, "checkpoint_seconds": 0.0}
PARTS = {"training": {**TRAINING, "micro_batch": 12}, "model": {"freeze_batch_norm": True}}
SAMPLER_PARAMS = {
    "m_per_class": {"samples_per_class": 4},
    "category_pairs": {"samples_per_class": 8, "batches_per_pair": 2},
    "random": {},
    "all_classes": {"samples_per_class": 1},
    "class_windows": {},
    "category_windows": {},
    "category_and_rest": {},
    "mined_triplets": {"pool": 60, "triplets": 64},
}
IMAGES = {"augmentation": "crop_flip", "image_size": 32, "mean": [0.5], "std": [0.5], "workers": 2}


def cases() -> dict[str, RunSpec]:
    """Return the specification of each case by its name, which is the loss's of a loss alone."""

    def spec(loss: str = "smooth_ap", **sections) -> RunSpec:
        return tiny_spec(loss, **{"training": TRAINING, **sections})

    trained = [each.name for each in LOSSES if each.facts["kind"] not in ("none", "triplets")]
    found = {name: spec(name) for name in trained}
    for name, params in SAMPLER_PARAMS.items():
        found[f"sampler {name}"] = spec(sampler={"name": name, "params": params})
    # glyphs have no category of the classes without one: those of the folder ``plugins`` have
    rest = "sampler category_and_rest"
    found[rest] = replace(
        found[rest], dataset=DatasetChoice("glyphs_with_rest", "glyphs_with_rest", {})
    )
    found["memory by image"] = spec("roadmap", memory={"size": -1})
    late = {"size": 100, "key": "fifo", "start_epoch": 1.0}
    found["memory fifo, noise"] = spec("blackbox_ap", memory=late)
    found["micro-batches"] = spec(**PARTS)
    found["micro-batches, memory"] = spec("contrastive", **PARTS, memory={"size": -1})
    # images that two other processes decode and augment
    folder = {"dataset": DatasetChoice("folder", "folder", {}), "batch_size": 16}
    found["files, workers"] = replace(spec(model={"channels": 3}, input=IMAGES), **folder)
    return found


@dataclass
class Killer:
    """Runs ``python -m benchmark train`` and kills it; ``environment`` decides how it starts."""

    phase_file: Path
    environment: dict[str, str]
    chance: random.Random

    def attempt(self, spec: Path, wanted: str = "", number: int = signal.SIGKILL) -> str | None:
        """Return the phase in which the run was killed, None where it ended before that.

        Without a phase that is wanted the run is left alone. SIGKILL is for its process, another
        signal for its workers as well.
        """
        longest, passes = PHASES.get(wanted, (0, 1))
        order = [wanted, self.chance.randint(1, passes), self.chance.uniform(0, longest), number]
        self.phase_file.with_name(f"{self.phase_file.name}.order").write_text(json.dumps(order))
        self.phase_file.write_text("other")
        with open(spec.parent.parent / "train.log", "ab") as log:
            streams = {"stdout": log, "stderr": log, "env": self.environment}
            done = subprocess.run(train_command(spec), timeout=LONGEST, check=False, **streams)
        if done.returncode == 0:
            return None
        if number != signal.SIGKILL and done.returncode == EXIT_INTERRUPTED:
            return wanted
        words = Path(log.name).read_text()[-2000:]
        assert done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL), words
        return self.phase_file.read_text() or "other"  # killed while it noted the next phase


@pytest.fixture(scope="module")
def killers(tmp_path_factory) -> Iterator[list[Killer]]:
    """Yield one killer of processes of their own, and one of forks."""
    folder = tmp_path_factory.mktemp("killers")
    (phase_file := folder / "phase").touch()
    before = dict(os.environ)
    os.environ.update(PYTHONPATH=os.pathsep.join([str(HOOKS), str(ROOT)]))
    os.environ.update(BENCHMARK_PLUGINS=str(PLUGINS), STRESS_PHASE=str(phase_file))
    os.environ.pop(VARIABLE, None)
    server = ForkServer()
    try:
        cold = Killer(phase_file, {**os.environ, VARIABLE: OFF}, random.Random(0))
        server.start()
        yield [cold, Killer(phase_file, dict(os.environ), random.Random(1))]
    finally:
        server.stop()
        os.environ.clear()
        os.environ.update(before)


def endure(spec: RunSpec, kills: int, killers: list[Killer], folder: Path) -> Counter[str]:
    """Return the kills by phase of a case that was killed ``kills`` times, by the killers in turn.

    Each run of it that ends must be the one that was left alone.
    """
    if spec.dataset.name == "folder":  # of twelve classes of twelve small JPEGs
        root = folder / "images"
        for number in range(144):
            path = root / f"class{number // 12}" / f"{number % 12}.jpg"
            save(path, seed=number, size=(44, 40))
        spec = replace(spec, dataset=DatasetChoice("folder", "folder", {"root": str(root)}))
    run = folder / "killed"
    whole = folder / "whole"
    killers[-1].attempt(write_spec_in(whole, spec))
    found: Counter[str] = Counter()
    for turn in range(10 * kills + 20):
        wanted = list(PHASES)[turn % len(PHASES)] if found.total() < kills else ""
        number = signal.SIGTERM if turn // len(PHASES) % 2 else signal.SIGKILL
        path = write_spec_in(run, spec)
        phase = killers[turn % len(killers)].attempt(path, wanted, number)
        if phase is not None:
            found[phase] += 1
            continue
        assert_same(run, whole)
        shutil.rmtree(run)
        if not wanted:
            break
    return found


def assert_same(run: Path, whole: Path) -> None:
    """Compare a finished run with one that was not disturbed, and look at what it left."""
    assert (run / RESULT).read_bytes() == (whole / RESULT).read_bytes()
    assert curve(run) == curve(whole)
    with np.load(run / NEIGHBOURS) as ours, np.load(whole / NEIGHBOURS) as theirs:
        assert all(ours[key].tobytes() == theirs[key].tobytes() for key in theirs)
    assert {path.name for path in run.iterdir()} <= LEFT_BEHIND


@pytest.mark.parametrize("name", cases())
def test_killed_runs_end_with_the_bits_of_one_left_alone(name, killers, tmp_path):
    assert endure(cases()[name], KILLS, killers, tmp_path).total() == KILLS


def test_every_phase_is_hit_and_every_sampler_has_a_case(killers, tmp_path):
    assert set(SAMPLERS.names()) <= set(SAMPLER_PARAMS)
    assert set(PHASES) <= set(endure(cases()["smooth_ap"], 3 * len(PHASES), killers, tmp_path))
