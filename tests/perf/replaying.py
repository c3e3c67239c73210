"""What a recorder costs of a step, and how long a replay takes: python tests/perf/replaying.py."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from benchmark.core.options import build, defaults_of
from benchmark.core.recipe import Recipe
from benchmark.core.records import LossChoice
from benchmark.losses import create_loss
from benchmark.losses.catalogue import load_catalogue
from benchmark.models.backbone import prepare_torchvision
from benchmark.replay.comparison import against_recipe
from benchmark.replay.recorder import Recorder
from benchmark.replay.trace import read_trace

BATCH = 128
SIDE = 64
STEPS = 20
TIMES = 40
CLOCKS = ("processor", "wall")

prepare_torchvision()
import torchvision

torch.manual_seed(0)
network = torchvision.models.resnet18(num_classes=128)
loss = create_loss("smooth_ap")
optimizer = torch.optim.Adam(network.parameters(), lr=1e-5)
images = (torch.randint(0, 256, (BATCH, 3, SIDE, SIDE)) / 255 - 0.45) / 0.225
labels = torch.arange(BATCH) // 4


def clocks() -> tuple[float, float]:
    """Return processor seconds, which no other program changes, and seconds."""
    return time.process_time(), time.perf_counter()


def since(started: tuple[float, float]) -> tuple[float, float]:
    return clocks()[0] - started[0], clocks()[1] - started[1]


def step(recorder: Recorder | None) -> tuple[float, float]:
    """Return the processor seconds and the seconds of a training step."""
    started = clocks()
    rows = F.normalize(network(images))
    value = loss(rows, labels)
    if recorder:
        recorder.step(inputs=images, labels=labels, embeddings=rows, loss=value)
    optimizer.zero_grad()
    value.backward()
    optimizer.step()
    return since(started)


times = int(sys.argv[1]) if len(sys.argv) > 1 else TIMES
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "trace.pt")
    facts = {"model": network, "optimizers": [optimizer], "steps": times + STEPS}
    step(None)
    recorder = Recorder(path, **facts)
    seconds = {True: [], False: []}
    for number in range(times):
        for recording in (number % 2 == 0, number % 2 == 1):
            seconds[recording].append(step(recorder if recording else None))
            recorder.now = None  # its hooks do nothing in a step that it does not know
    plain = np.array(seconds[False])
    shares = np.median(seconds[True] - plain, axis=0) / np.median(plain, axis=0)
    for name, step_takes, share in zip(CLOCKS, np.median(plain, axis=0), shares, strict=True):
        print(f"{name}: a step {step_takes:.3f} s, the recorder adds {share:+.1%}")
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-5)  # with an empty state
    recorder = Recorder(path, model=network, optimizers=[optimizer], steps=STEPS)
    for _ in range(STEPS):
        step(recorder)
    recorder.close()
    recipe = {
        "model": {"backbone": "resnet18", "embedding_dim": 128},
        "input": {"image_size": SIDE, "mean": [0.45], "std": [0.225]},
        "optimizer": {"lr": 1e-5},
        "sampler": {"name": "m_per_class", "params": {"samples_per_class": 4}},
    }
    choice = LossChoice("smooth_ap", "smooth_ap", defaults_of(load_catalogue()["smooth_ap"].config))
    started = clocks()
    found = list(against_recipe(read_trace(path), build(Recipe, recipe, ""), choice, BATCH))
    processor, wall = since(started)
    print(f"a replay of {STEPS} steps: {processor:.1f} s of a processor, {wall:.1f} s in all")
    assert {finding.outcome for finding in found} == {"equal"}, found
