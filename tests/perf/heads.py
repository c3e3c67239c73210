"""Heads on stored features beside what a user would write; what a run and its memory cost."""

import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from perf.timing import Row, Target, compare
from torch.nn.functional import normalize

from benchmark.core.interrupts import StopRequest
from benchmark.core.options import build, defaults_of
from benchmark.core.recipe import Recipe
from benchmark.core.records import (
    PROVENANCE,
    DatasetChoice,
    LossChoice,
    RunSpec,
    Setting,
)
from benchmark.core.results import Provenance
from benchmark.losses import create_loss
from benchmark.losses.catalogue import load_catalogue
from benchmark.training.components import build_components
from benchmark.training.fork_server import THREADS, ForkServer
from benchmark.training.loop import Trainer
from benchmark.training.numerics import prepare_numerics
from benchmark.training.progress import Progress
from benchmark.training.run import train

MOST = 1.25  # times the seconds of a bare step
WIDTH = 768
DIM = 128
# Rows, as CUB's.
TRAINED = 5_864
TESTED = 5_924
SIZES = (32, 128, 512)
STEPS = 500
LARGE = 60_000
PEAK = 2**10  # MiB
FORKS = 20
BESIDE = 1.0  # seconds that a run may take beside its steps and one evaluation


def heads(quick: bool) -> Iterator[Row]:
    """Steps per second of a head on 5,864 x 768 features, beside a loop of index_select, Linear,
    loss and SGD; seconds of a run by the fork server beside its steps and one evaluation, median;
    MiB of a process that trains and evaluates on 60,000 x 768 in float16."""
    sizes, steps, repeats = (SIZES[:1], 50, 2) if quick else (SIZES, STEPS, 5)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "features.npz"
        write_features(path, TRAINED + TESTED, np.float32)
        for loss in ("smooth_ap", "contrastive"):
            for size in sizes:
                trainer = trainer_of(Path(folder), spec_of(path, size, loss))
                ours = partial(_steps_of, trainer, steps)
                bare = partial(_bare_steps, trainer, steps)
                what = f"{loss}, batches of {size}"
                yield compare(what, ours, bare, repeats, 1 / MOST)
        costs = costs_of_forks(Path(folder), path, 2 if quick else FORKS)
        what = "run by the fork server beside steps and evaluation"
        median = statistics.median(costs)
        yield {
            "what": what,
            "ours": median,
            "spread": max(costs) - min(costs),
            "load": os.getloadavg()[0],
            "targets": [Target(what, median, BESIDE, "s")],
        }
    if not quick:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            peak = process.submit(peak_of_training, LARGE).result()
        what = f"process on {LARGE:,} x {WIDTH} in float16"
        yield {
            "what": what,
            "ours": peak,
            "targets": [Target(what, peak, PEAK, "MiB")],
        }


def write_features(path: Path, rows: int, kind: Any) -> None:
    """Write made-up features of classes of ten rows, half of which train."""
    generator = np.random.default_rng(0)
    labels = np.arange(rows) // 10
    split = np.where(labels < labels.max() // 2 + 1, "train", "test")
    features = generator.standard_normal((rows, WIDTH), np.float32).astype(kind)
    np.savez(path, embeddings=features, labels=labels, split=split)


def spec_of(path: Path, size: int, loss: str) -> RunSpec:
    """Return one epoch of a linear head on a file of features."""
    recipe = {
        "model": {
            "backbone": "features",
            "freeze_backbone": True,
            "embedding_dim": DIM,
        },
        "sampler": {
            "name": "m_per_class",
            "params": {"samples_per_class": 4},
        },
        "evaluation": {"recall_at": [1], "neighbour_queries": 0},
    }
    params = defaults_of(load_catalogue()[loss].config)
    data = DatasetChoice("features", "features", {"file": str(path)})
    choice = LossChoice(loss, loss, params)
    return RunSpec(
        data,
        Setting("features"),
        choice,
        size,
        0,
        build(Recipe, recipe, "recipe"),
    )


def trainer_of(folder: Path, spec: RunSpec) -> Trainer:
    """Return the trainer of a run, before its first step."""
    device = prepare_numerics(spec.recipe.training)
    return Trainer(build_components(spec, device), folder, Progress(spec.run_id, 10**6))


def _steps_of(trainer: Trainer, steps: int) -> float:
    """Return the steps per second of the training loop; an epoch is begun and not evaluated."""
    done = trainer.state.step
    started = time.perf_counter()
    while trainer.state.step < done + steps:
        with StopRequest() as stop:
            rate = trainer._train_epoch(stop)
        trainer.state.finish_epoch(rate, None)
    return (trainer.state.step - done) / (time.perf_counter() - started)


def _bare_steps(trainer: Trainer, steps: int) -> float:
    """Return the steps per second of a loop with nothing but the steps, on the same batches."""
    components = trainer.components
    spec = components.spec
    features = torch.from_numpy(components.dataset.train.features)
    loss = create_loss(spec.loss.name, **spec.loss.params)
    head = torch.nn.Linear(WIDTH, DIM)
    optimizer = torch.optim.SGD(head.parameters(), lr=1e-3)
    batches: list[torch.Tensor] = []
    while len(batches) < steps:
        batches += [torch.from_numpy(np.array(batch)) for batch in components.sampler.epoch(0)]
    started = time.perf_counter()
    for rows in batches:
        optimizer.zero_grad()
        embeddings = normalize(head(features.index_select(0, rows)))
        loss(embeddings, components.labels[rows]).backward()
        optimizer.step()
    return len(batches) / (time.perf_counter() - started)


def peak_of_training(rows: int) -> float:
    """Return the most MiB of this process while it trains a head on ``rows`` in float16."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "features.npz"
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            process.submit(write_features, path, rows, np.float16).result()
        spec = spec_of(path, 128, "smooth_ap")
        spec.write(Path(folder) / "spec.json")
        train(Path(folder) / "spec.json")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def costs_of_forks(folder: Path, features: Path, runs: int) -> list[float]:
    """Return the seconds of each run by the fork server beside its steps and one evaluation."""
    spec = spec_of(features, 128, "smooth_ap")
    server = ForkServer()
    server.start()
    costs = []
    try:
        for number in range(runs + 1):
            run = folder / f"run{number}"
            run.mkdir()
            path = run / "spec.json"
            spec.write(path)
            command = [sys.executable, "-m", "benchmark", "train", "--spec", str(path)]
            environment = {**os.environ, **THREADS}
            quiet = {"check": True, "stdout": subprocess.DEVNULL}
            started = time.perf_counter()
            subprocess.run(command, env=environment, **quiet)
            seconds = time.perf_counter() - started
            timing = Provenance.read(run / PROVENANCE).timing
            costs.append(seconds - timing.train_seconds - timing.eval_seconds)
    finally:
        server.stop()
    return costs[1:]  # the first one waits until the server has imported everything
