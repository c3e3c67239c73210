"""Specifications of runs that take about a second: glyphs_tiny, timm's smallest ResNet, a dozen
steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmark.core.options import build, defaults_of
from benchmark.core.recipe import Recipe
from benchmark.core.records import METRICS, DatasetChoice, LossChoice, RunSpec, Setting
from benchmark.losses.catalogue import load_catalogue
from benchmark.training.interrupt import StopRequest

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
    looks = iter(range(10_000))
    asked = property(lambda self: next(looks) >= steps - 1, lambda self, value: None)
    monkeypatch.setattr(StopRequest, "requested", asked, raising=False)
