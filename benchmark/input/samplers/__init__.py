"""Samplers: one file each, found by their registry. Nothing here imports torch."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmark.core.errors import Problem
from benchmark.core.options import build, problems
from benchmark.core.registry import Registry
from benchmark.input.samplers.base import Sampler

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
    target = SAMPLERS[name].target
    config = build(target.Config, dict(params), f"sampler '{name}'")
    if batch_size == len(labels) and not target.pooled:
        target = SAMPLERS[WHOLE].target
    return target(config, labels=labels, categories=categories, batch_size=batch_size, seed=seed)


def check(name: str, params: Mapping[str, Any], batch_size: int) -> list[Problem]:
    """Return what is wrong with a sampler's parameters or batch size, without data."""
    target = SAMPLERS[name].target
    wrong = problems(target.Config, dict(params), f"sampler '{name}'")
    if wrong:
        return wrong
    return [Problem(words) for words in target.check(target.Config(**params), batch_size)]
