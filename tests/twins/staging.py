"""What the authors' programs need to run two steps here: made-up images, no GPU, the recorder.

A program is read from its folder, and one line that calls the recorder is put before its backward
pass. Nothing of a program is kept in this repository.
"""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from PIL import Image

from benchmark.models.backbone import prepare_torchvision
from benchmark.replay.recorder import Recorder

SIDE = 72  # pixels of a made-up image
COORDINATES = 12  # of each parameter: a committed trace stays below 300 kB
STEPS = 2


class EndedError(Exception):
    """The steps are recorded; the rest of the program is not run."""


def prepare(*folders: str | Path) -> None:
    """Let a program of 2018 to 2021 run on a CPU with the torch of today."""
    prepare_torchvision()
    torch.manual_seed(0)
    np.random.seed(0)
    torch.set_num_threads(1)
    sys.path[:0] = [str(folder) for folder in folders]
    torch.Tensor.cuda = lambda self, *_, **__: self
    torch.nn.Module.cuda = lambda self, *_, **__: self
    torch.cuda.manual_seed_all = lambda seed: None
    np.float = float
    np.int = int
    heaviside = torch.heaviside  # gave no gradient in torch 1.8, and is refused today
    torch.heaviside = lambda given, values: heaviside(given.detach(), values)


def stub(name: str, **content) -> None:
    """Put a module with this content in the place of one that is not installed."""
    module = ModuleType(name)
    vars(module).update(content)
    sys.modules[name] = module


def anything(*_, **__):
    """Stand for a logger: every attribute can be called and does nothing."""

    class Silent:
        def __getattr__(self, name):
            return lambda *_, **__: None

    return Silent()


def pasted(path: Path, before: str, line: str) -> str:
    """Return a program with ``line`` before the first line that contains ``before``."""
    rows = path.read_text(encoding="utf-8").split("\n")
    (at, *_) = (number for number, row in enumerate(rows) if before in row)
    indent = rows[at][: len(rows[at]) - len(rows[at].lstrip())]
    return "\n".join([*rows[:at], indent + line, *rows[at:]])


def run(text: str, module: ModuleType, path: Path) -> None:
    """Run a changed program in the place of a module."""
    exec(compile(text, str(path), "exec"), vars(module))


class Paste:
    """The recorder, as the pasted line calls it: ``TRACE(model, optimizers, ...)``."""

    def __init__(self, out: Path):
        self.out = out
        self.recorder = None
        self.taken = 0
        builtins.TRACE = self

    def __call__(self, model, optimizers, criterion=None, /, **step) -> None:
        if self.recorder is None:
            facts = {"model": model, "optimizers": optimizers, "loss": criterion}
            self.recorder = Recorder(self.out, **facts, steps=STEPS, coordinates=COORDINATES)
        if self.taken == STEPS:
            self.recorder.close()
            raise EndedError
        self.taken += 1
        self.recorder.step(**step)


def images(folder: Path, classes: int, each: int) -> list[Path]:
    """Write made-up photographs, class after class; return their paths."""
    generator = np.random.default_rng(7)
    paths = []
    y, x = np.mgrid[:SIDE, :SIDE] / SIDE
    for number in range(classes):
        colours = generator.uniform(0, 255, (2, 3))
        waves = generator.uniform(2, 12, 2)
        for image in range(each):
            shift = generator.uniform(0, 6.28)
            pattern = np.sin(waves[0] * x + waves[1] * y + shift)[..., None] / 2 + 0.5
            pixels = colours[0] * pattern + colours[1] * (1 - pattern)
            pixels = np.clip(1.3 * pixels - 30 + generator.normal(0, 20, pixels.shape), 0, 255)
            path = folder / f"{number:03d}" / f"{number:03d}_{image:02d}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels.astype(np.uint8)).save(path, quality=95)
            paths.append(path)
    return paths
