"""Runs that take about a second (glyphs_tiny, timm's smallest ResNet), and ends on their way."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from workplace import STUCK

from benchmark.core.interrupts import Interrupted, StopRequest
from benchmark.core.options import build, defaults_of
from benchmark.core.recipe import Recipe
from benchmark.core.records import METRICS, DatasetChoice, LossChoice, RunSpec, Setting
from benchmark.losses.catalogue import load_catalogue
from benchmark.training.run import train
from benchmark.training.state import CHECKPOINT, RunState

TIMES = {"images_per_second", "loss_ms", "seconds"}


def tiny_spec(loss: str = "smooth_ap", seed: int = 0, **sections: dict[str, Any]) -> RunSpec:
    """Returns a specification with two epochs of batches of 32; ``sections`` overlay the
    recipe's."""
    recipe = {
        "model": {"backbone": "test_resnet", "channels": 1, "embedding_dim": 32},
        "input": {"augmentation": "affine_noise", "image_size": 32, "mean": [0.5], "std": [0.5]},
        "optimizer": {"name": "adamw", "lr": 2e-3},
        "schedule": {"name": "one_cycle"},
        "sampler": {"name": "m_per_class", "params": {"samples_per_class": 4}},
        "training": {"epochs": 2, "checkpoint_seconds": 1e9},
        "evaluation": {"recall_at": [1, 10], "neighbour_queries": 4, "neighbours": 5},
    }
    for name, values in sections.items():
        recipe[name] = {**recipe.get(name, {}), **values}
    params = defaults_of(load_catalogue()[loss].config)
    return RunSpec(
        dataset=DatasetChoice("glyphs_tiny", "glyphs_tiny", {}),
        setting=Setting("test_resnet"),
        loss=LossChoice(loss, loss, params),
        batch_size=32,
        seed=seed,
        recipe=build(Recipe, recipe, "recipe"),
    )


def write_spec_in(folder: Path, spec: RunSpec) -> Path:
    """Writes the specification into ``folder``; returns its path."""
    path = folder / "spec.json"
    spec.write(path)
    return path


def curve(folder: Path) -> list[dict]:
    """Returns metrics.jsonl without what a clock measured."""
    lines = (folder / METRICS).read_text().splitlines()
    return [
        {key: value for key, value in json.loads(line).items() if key not in TIMES}
        for line in lines
    ]


def stop_after(steps: int, monkeypatch) -> None:
    """Makes the next run ask to stop after ``steps`` optimiser steps."""
    taken: list[int] = []
    count_step = RunState.count_step

    def counting(self: RunState, images: int, seconds: float, passes: int) -> None:
        count_step(self, images, seconds, passes)
        taken.append(images)

    monkeypatch.setattr(RunState, "count_step", counting)
    asked = property(lambda self: len(taken) >= steps, lambda self, value: None)
    monkeypatch.setattr(StopRequest, "requested", asked, raising=False)


def stopped_after(steps: int, folder: Path, spec: RunSpec, monkeypatch) -> Path:
    """Trains a run in ``folder`` that is asked to stop on its way; returns the path of its spec."""
    path = write_spec_in(folder, spec)
    with monkeypatch.context() as patch:
        stop_after(steps, patch)
        with pytest.raises(Interrupted):
            train(path)
    return path


FULL = 2**16  # bytes that a pipe takes


def train_command(spec: Path) -> list[str]:
    """Return the command that trains the run of a specification."""
    return [sys.executable, "-m", "benchmark", "train", "--spec", str(spec)]


@contextlib.contextmanager
def held(
    folder: Path,
    spec: RunSpec,
    environment: dict[str, str] | None = None,
    until: str = CHECKPOINT,
) -> Iterator[tuple[subprocess.Popen, Callable[[], bytes]]]:
    """Yield a command that trains in ``folder``, once it has a checkpoint, and what lets it go on.

    It prints to a pipe that is full, so that it waits with the line of its first epoch. Without
    checkpoints it has a file of another name ``until`` then. Its group of processes is its own.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, bytes(4096))
    os.set_blocking(writing, True)
    words = train_command(write_spec_in(folder, spec))
    process = subprocess.Popen(words, env=environment, stdout=writing, start_new_session=True)
    os.close(writing)
    try:
        wait_for((folder / until).exists)
        yield process, lambda: os.read(reading, FULL)
    finally:
        process.kill()
        process.wait()
        os.close(reading)


def wait_for(condition: Callable[[], object]) -> None:
    """Return once a condition holds; fail after the time in which a program counts as stuck."""
    deadline = time.monotonic() + STUCK
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def in_a_fork(function: Callable[..., Any], *arguments: object) -> Any:
    """Return what a function returns in a copy of this process, which keeps all that it registers.

    The copy has imported torch already, which takes a new process seconds.
    """
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result(STUCK)
