"""Whether what a checkpoint holds is what this run can have left: it may come from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from benchmark.core.recipe import Recipe
from benchmark.input.samplers import Sampler
from benchmark.training.state import RunState

ADAM_STATE = {"step", "exp_avg", "exp_avg_sq"}  # what Adam and AdamW keep of a parameter
MOST = 10**15  # of a number that is counted


def place_problems(state: RunState, recipe: Recipe, sampler: Sampler) -> Iterator[str]:
    """Yield why this run never has this position and history, in words."""
    epochs, every = recipe.training.epochs, recipe.evaluation.every
    if state.epoch > epochs or (state.epoch == epochs and state.position):
        yield f"epoch {state.epoch} of {epochs}, and {state.position} steps of the next one"
    if [record.epoch for record in state.records] != [*range(1, state.epoch + 1)]:
        yield f"records of other epochs than the first {state.epoch}"
    for record in state.records:
        evaluated = record.epoch % every == 0 or record.epoch == epochs
        if record.loss is None or not math.isfinite(record.loss):
            yield f"the loss {record.loss} of epoch {record.epoch}"
        if evaluated != bool(record.evaluation):
            yield f"the scores of epoch {record.epoch}, which are there without need, or missing"
    before = state.records[-1].step if state.records else 0
    if (state.step - before, len(state.losses)) != (state.position, state.position):
        yield f"{state.step} steps and {len(state.losses)} losses at position {state.position}"
    # those of a run that diverges may be infinite or no numbers
    if any(1e100 < abs(loss) < float("inf") for loss in state.losses):
        yield "a loss whose sum with others is infinite"
    counts = (state.epoch_images, state.images_forward, state.images_backward, state.resumed)
    if max(counts) > MOST:
        yield f"counts of up to {max(counts)}"
    yield from _mined_problems(state, sampler)


def _mined_problems(state: RunState, sampler: Sampler) -> Iterator[str]:
    if state.mined and not sampler.pooled:
        yield "mined batches, which this run's sampler does not make"
    if sampler.pooled and state.position > len(state.mined):
        yield f"position {state.position} among {len(state.mined)} mined batches"
    images = len(sampler.labels)
    sizes = sampler.mined_sizes()
    if state.mined and sizes is not None and [*map(len, state.mined)] != sizes:
        yield "mined batches of other sizes than those of the sampler"
    if any(len(batch) < 2 or not 0 <= min(batch) <= max(batch) < images for batch in state.mined):
        yield f"a mined batch that is not of two or more of the {images} images"


def same_kind(own: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Say whether the tensors of a state are those of another one in all but their values."""
    return own.keys() == given.keys() and all(
        torch.is_tensor(given[name]) and _alike(tensor, given[name])
        for name, tensor in own.items()
        if torch.is_tensor(tensor)
    )


def belongs(state: Mapping[str, Any], parameter: torch.Tensor) -> bool:
    """Say whether what Adam keeps of a parameter is all there; its kernels look at nothing."""
    if state.keys() != ADAM_STATE or not all(map(torch.is_tensor, state.values())):
        return False
    step = state["step"]
    means = (state[name] for name in ADAM_STATE - {"step"})
    return (
        step.ndim == 0
        and _is_plain(step)
        and step.is_floating_point()
        and 0 <= float(step) <= MOST
        and all(_alike(parameter, mean) and _is_dense(mean) for mean in means)
    )


def _alike(own: torch.Tensor, given: torch.Tensor) -> bool:
    kinds = ((each.shape, each.dtype, each.layout) for each in (own, given))
    return next(kinds) == next(kinds) and _is_plain(given)


def _is_plain(tensor: torch.Tensor) -> bool:
    """Say whether a tensor holds its values as they are, and nothing is to be derived by it."""
    return not (tensor.requires_grad or tensor.is_neg() or tensor.is_conj())


def _is_dense(tensor: torch.Tensor) -> bool:
    """Say whether each element has a place of its own: a tensor may be saved with stride 0."""
    return tensor.is_contiguous() or (
        tensor.ndim == 4 and tensor.is_contiguous(memory_format=torch.channels_last)
    )
