"""The input pipeline that a user would write: torchvision's ImageFolder behind a DataLoader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader

from benchmark.core.recipe_input import InputConfig
from benchmark.models.vision_ops import prepare_torchvision


def image_folder_batches(
    root: Path, config: InputConfig, batches: int | Sequence[Sequence[str]]
) -> Callable[[], Iterable[list[torch.Tensor]]]:
    """Return a function that gives an epoch of [images (B, 3, H, W), labels (B,)] at each call.

    Transforms and workers are those of ``config`` (``crop_flip``); workers live between epochs.
    ``batches``: a batch size for all images in order, or batches of paths relative to ``root``.
    """
    prepare_torchvision()
    from torchvision import datasets, transforms

    crop = transforms.RandomResizedCrop(
        config.image_size, scale=config.crop_area, ratio=config.crop_aspect
    )
    steps = [
        *([] if config.resize is None else [transforms.Resize(config.resize)]),
        crop,
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(config.mean, config.std),
    ]
    images = datasets.ImageFolder(str(root), transforms.Compose(steps))
    chosen: dict[str, Any] = {"batch_size": batches}
    if not isinstance(batches, int):
        paths = [Path(path).relative_to(root).as_posix() for path, _ in images.samples]
        numbers = {path: number for number, path in enumerate(paths)}
        chosen = {"batch_sampler": [[numbers[path] for path in batch] for batch in batches]}
    loader = DataLoader(
        images, num_workers=config.workers, persistent_workers=config.workers > 0, **chosen
    )
    return lambda: loader
