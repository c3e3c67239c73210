"""The input pipeline that a user would write: torchvision's ImageFolder and transforms behind a DataLoader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import torch
from torch.utils.data import DataLoader

from benchmark.core.recipe import InputConfig
from benchmark.models.vision_ops import prepare_torchvision


def image_folder_batches(
    root: Path, config: InputConfig, batches: int | Sequence[Sequence[str]]
) -> Callable[[], Iterable[list[torch.Tensor]]]:
    """Returns what yields an epoch of [images (B, 3, H, W), labels (B,)] at each call, with the transforms of
    ``config`` (``crop_flip``) and as many workers, which are kept between epochs.

    batches   a batch size for all images in order, or the batches as paths relative to ``root``
    """
    prepare_torchvision()
    from torchvision import datasets, transforms

    steps = [] if config.resize is None else [transforms.Resize(config.resize)]
    steps += [
        transforms.RandomResizedCrop(
            config.image_size, scale=config.crop_area, ratio=config.crop_aspect
        ),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(config.mean, config.std),
    ]
    images = datasets.ImageFolder(str(root), transforms.Compose(steps))
    if isinstance(batches, int):
        chosen = {"batch_size": batches}
    else:
        numbers = {
            Path(path).relative_to(root).as_posix(): number
            for number, (path, _) in enumerate(images.samples)
        }
        chosen = {"batch_sampler": [[numbers[path] for path in batch] for batch in batches]}
    loader = DataLoader(
        images, num_workers=config.workers, persistent_workers=config.workers > 0, **chosen
    )
    return lambda: loader
