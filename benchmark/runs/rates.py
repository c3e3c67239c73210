"""GPU-hours from measured rates: ``gpu_rates.csv`` has the images per second of networks on a GPU.

images_s             of training steps, with images in memory
evaluation_images_s  of the forward pass of an evaluation, which is in float32
at_once, parts       images of a pass; whether a batch takes several, "parts" or "staged"
peak_mb, counted_mb  memory at the peak, and the part of it that is foreseen, MiB
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from benchmark.core.options import build
from benchmark.core.records import RunSpec
from benchmark.datasets import loader_of
from benchmark.input.samplers import SAMPLERS

TABLE = Path(__file__).with_name("gpu_rates.csv")
NOT_EMBEDDED = ("train", "all")  # counts of a dataset that no evaluation embeds


@dataclass
class Hours:
    """GPU-hours of runs.

    by_tf32   hours that ``training.precision: tf32`` saves of float32, as far as its rate is known
    guessed   runs by the step whose rate is guessed from another row of the table
    left_out  runs that are not counted, by reason
    """

    training: float = 0.0
    evaluation: float = 0.0
    by_tf32: float = 0.0
    guessed: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


@cache
def rates() -> list[Any]:
    """Return the rows of the table, with its columns as attributes."""
    import pandas as pd

    return list(pd.read_csv(TABLE, keep_default_na=False).itertuples(index=False))


def hours_of(specs: Iterable[RunSpec]) -> Hours:
    """Return the hours of training and evaluating runs on the GPU of the table, one at a time.

    Reading files, whitening and searches are not counted.
    """
    hours = Hours()
    for spec in specs:
        recipe = spec.recipe
        row = rate_of(spec)
        images = images_of(spec)
        if recipe.model.freeze_backbone:
            hours.left_out["heads on frozen backbones"] += 1
        elif row is None:
            hours.left_out[f"no rate of {recipe.model.backbone}"] += 1
        elif images is None:
            hours.left_out[f"no published number of training images of {spec.dataset.label}"] += 1
        else:
            of_an_hour = 3600 * (row.image_size / recipe.input.image_size) ** 2
            training = images[0] / row.images_s / of_an_hour
            hours.training += training
            hours.evaluation += images[1] / row.evaluation_images_s / of_an_hour
            asked = step_of(spec)
            if asked != _measured(row):
                step = (
                    f"{row.network} {asked.precision} {asked.side} pixels, {asked.at_once} at once"
                )
                hours.guessed[f"{step} {asked.parts}".strip()] += 1
            if asked.precision == "float32":
                hours.by_tf32 += training * (1 - 1 / tf32_gain(row.network))
    return hours


class Step(NamedTuple):
    """A step of training: precision, side of images, images of a pass, and kind of parts."""

    precision: str
    side: int
    at_once: int
    parts: str


def step_of(spec: RunSpec) -> Step:
    """Return the step of a run."""
    training = spec.recipe.training
    at_once = min(training.micro_batch or spec.batch_size, spec.batch_size)
    parts = ""
    if at_once < spec.batch_size:
        parts = "staged" if training.staged else "parts"
    return Step(training.precision, spec.recipe.input.image_size, at_once, parts)


def _measured(row: Any) -> Step:
    return Step(row.precision, row.image_size, row.at_once, row.parts)


def rate_of(spec: RunSpec) -> Any:
    """Return the row of the run's network that is nearest to its step; None without such a row.

    The rate is assumed to be inversely proportional to the number of pixels.
    """
    network = spec.recipe.model.backbone.partition(".")[0]
    asked = step_of(spec)

    def distance(row: Any) -> tuple[float, ...]:
        measured = _measured(row)
        return (
            measured.precision != asked.precision,
            measured.parts != asked.parts,
            abs(math.log(measured.side / asked.side)),
            abs(math.log(measured.at_once / asked.at_once)),
        )

    return min((row for row in rates() if row.network == network), key=distance, default=None)


def tf32_gain(network: str) -> float:
    """Return the speed of a network in TF32 divided by its speed in float32; 1: not measured."""
    speeds = {_measured(row): row.images_s for row in rates() if row.network == network}
    for step, speed in speeds.items():
        if step.precision == "tf32":
            return float(speed / speeds[step._replace(precision="float32")])
    return 1.0


def images_of(spec: RunSpec) -> tuple[float, float] | None:
    """Return the images that a run trains on, and those that its evaluations embed, if known."""
    counts = loader_of(spec.dataset.name, spec.dataset.params).expected_counts()
    images = counts.get("train", {}).get("images")
    if not images:
        return None
    recipe = spec.recipe
    sampler = SAMPLERS[recipe.sampler.name].target
    config = build(sampler.Config, dict(recipe.sampler.params), "sampler")
    categories = max(kinds.get("categories", 0) for kinds in counts.values())
    of_epoch = sampler.images_of_epoch(config, spec.batch_size, images, categories)
    epochs = recipe.training.epochs
    evaluations = max(math.ceil(epochs / recipe.evaluation.every), 1)
    tests = [kinds.get("images", 0) for name, kinds in counts.items() if name not in NOT_EMBEDDED]
    area = sum(scale**2 for scale in recipe.evaluation.scales or [1.0])
    return epochs * of_epoch, evaluations * area * sum(tests)
