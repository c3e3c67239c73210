"""Samplers: one file each, found by their registry. Nothing here imports torch."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmark.core.errors import DataError, Problem
from benchmark.core.options import build, problems, schema_of
from benchmark.core.plugin_errors import file_of
from benchmark.core.registry import Registry
from benchmark.input.samplers.base import MOST_PASSES, Sampler

SAMPLERS = Registry("sampler", "benchmark.input.samplers")

WHOLE = "random"  # the sampler whose one batch of all images holds each once

__all__ = ["SAMPLERS", "Sampler", "check", "create_sampler"]


def create_sampler(
    name: str,
    params: Mapping[str, Any],
    *,
    labels: np.ndarray,
    categories: np.ndarray | None,
    batch_size: int,
    seed: int,
) -> Sampler:
    """Return the sampler registered as ``name`` of images with labels and categories (N,).

    A batch of all images leaves it no choice: then each epoch is one batch, in random order.
    """
    entry = SAMPLERS[name]
    config = build(entry.target.Config, dict(params), f"sampler '{name}'")
    whole = batch_size == len(labels) and not entry.target.pooled
    target = SAMPLERS[WHOLE].target if whole else entry.target
    try:
        sampler = target(
            config, labels=labels, categories=categories, batch_size=batch_size, seed=seed
        )
        if file_of(target) and not sampler.pooled:
            _check_plugin(sampler)
    except Exception as error:
        SAMPLERS.raise_named(error, target)
    return sampler


def _check_plugin(sampler: Sampler) -> None:
    """Raise DataError for a plugin whose epochs are not those that a run is filed under."""
    first, _, again = (sampler.epoch(number) for number in (0, 1, 0))
    if len(first) != len(again) or not all(map(np.array_equal, first, again)):
        raise DataError(
            "epoch 0 has other batches when it is asked for again; draw from the generator alone"
        )
    if (images := sum(map(len, first))) > MOST_PASSES * len(sampler.labels):
        words = f"an epoch has {images:,} images, more than {MOST_PASSES} times those there are"
        raise DataError(f"{words}; give fewer batches")
    sizes = {len(batch) for batch in first}
    if odd := [size for size in sizes if not 2 <= size <= sampler.batch_size]:
        words = f"a batch holds {odd[0]} images"
        raise DataError(f"{words}; give 2 to {sampler.batch_size}, the size that runs are named by")


def check(name: str, params: Mapping[str, Any], batch_size: int) -> list[Problem]:
    """Return what is wrong with a sampler's parameters or batch size, without data."""
    target = SAMPLERS[name].target
    wrong = problems(schema_of(target.Config), dict(params), f"sampler '{name}'")
    if wrong:
        return wrong
    try:
        return [Problem(words) for words in target.problems_of(target.Config(**params), batch_size)]
    except Exception as error:
        SAMPLERS.raise_named(error, target)
