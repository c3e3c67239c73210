"""How much memory of a GPU a run's training takes, counted without one.

Counted are what autograd keeps of one image, times the images that go through the network at once,
and four numbers a parameter: weight, gradient, and two of Adam. Autocast halves what is kept. Not
counted: workspaces of cuDNN, the loss, an evaluation, and what CUDA itself takes. On an H200 the
peak of a step was 1.01 to 1.29 times as much, and within ``FACTOR`` or ``LEAST`` of it in all 33
cases (``benchmark/runs/gpu_rates.csv``).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import torch

from benchmark.core.recipe import ModelConfig
from benchmark.core.records import RunSpec
from benchmark.models import create_model

# times what is counted, or MiB beyond it, whichever is more
FACTOR = 1.17
LEAST = 800


@cache
def counted(config: ModelConfig, side: int) -> tuple[float, int]:
    """Return the bytes kept of one image, and those of the parameters, in float32."""
    model = create_model(config, seed=0).train()
    images = torch.zeros(1, config.channels, side, side)
    own = {each.untyped_storage().data_ptr() for each in (*model.parameters(), *model.buffers())}
    kept: dict[int, int] = {}
    keep = []  # so that no storage is used twice

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
            keep.append(storage)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(images)
    return sum(kept.values()), 4 * sum(each.numel() for each in model.parameters())


def training_mb(spec: RunSpec) -> float:
    """Return the MiB that a run is to ask for."""
    return asked_mb(counted_mb(spec))


def asked_mb(mb: float) -> float:
    """Return the MiB to ask for where so many are counted."""
    return max(FACTOR * mb, mb + LEAST)


def counted_mb(spec: RunSpec) -> float:
    """Return the MiB that are counted of the training of a run."""
    recipe = spec.recipe
    training = spec.recipe.training
    bare = replace(recipe.model, pretrained=False, checkpoint=None)
    side = min(recipe.input.image_size, 224)  # a larger image has as much more as it has pixels
    image, weights = counted(bare, side)
    image *= (recipe.input.image_size / side) ** 2
    share = 1.0 if training.precision in ("float32", "tf32") else 0.5
    at_once = min(training.micro_batch or spec.batch_size, spec.batch_size)
    return (share * image * at_once + 4 * weights) / 2**20
