"""Inputs turn image numbers into tensors: of files, or of images in memory batch by batch."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
import torch
import torch.nn.functional as F

from benchmark.core.errors import ConfigError, Problem
from benchmark.core.recipe import InputConfig, check_input
from benchmark.core.seeding import derive
from benchmark.datasets.base import ImageSet
from benchmark.input.views import resize


class Input(ABC):
    """Turns image numbers into float tensors (B, C, H, W) in channels-last memory, normalised."""

    @abstractmethod
    def train_batches(
        self, batches: Sequence[np.ndarray], seed: int, epoch: int, start: int = 0
    ) -> Iterator[torch.Tensor]:
        """Yield the augmented tensors of ``batches[start:]``.

        An image depends only on (seed, epoch, number of the batch, place in it).
        """

    @abstractmethod
    def eval_batches(self, batch_size: int, scale: float = 1.0) -> Iterator[torch.Tensor]:
        """Yield batches of all images in order, without augmentation; ``scale``: of their sides."""


def normalisation(config: InputConfig, channels: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and standard deviation as (1, C, 1, 1).

    One value holds for all channels; grey takes the first of several.
    """

    def shaped(values: Sequence[float]) -> torch.Tensor:
        channel_values = list(values) * channels if len(values) == 1 else values[:channels]
        return torch.tensor(channel_values, dtype=torch.float32).view(1, channels, 1, 1)

    return shaped(config.mean), shaped(config.std)


def create_input(image_set: ImageSet, config: InputConfig, channels: int) -> Input:
    """Return the input of ``image_set``; raise ConfigError with all conflicting options.

    Pixels in memory of the right size get batched tensor operations; all else is decoded and
    transformed image by image.
    """
    side = config.image_size
    fits = image_set.pixels is not None and image_set.pixels.shape[1:3] == (side, side)
    problems = check_input(config, channels)
    if config.augmentation == "affine_noise" and not fits:
        shape = "files" if image_set.pixels is None else f"{image_set.pixels.shape[1:3]} pixels"
        words = (
            f"'affine_noise' works on images in memory of image_size {side}, and this dataset has "
            f"{shape}; use 'crop_flip' or 'none'"
        )
        problems.append(Problem(words, "augmentation"))
    if problems:
        raise ConfigError("recipe section input", problems)
    unresized = config.augmentation == "none" and config.resize in (None, side)
    if fits and (config.augmentation == "affine_noise" or unresized):
        return PixelInput(image_set, config, channels)
    from benchmark.input.files import FileInput

    return FileInput(image_set, config, channels)


class PixelInput(Input):
    """Rotates, shifts, zooms and adds noise to batches of images that lie in memory as uint8."""

    def __init__(self, image_set: ImageSet, config: InputConfig, channels: int):
        self.config, self.channels = config, channels
        pixels = np.asarray(image_set.pixels)
        if pixels.shape[-1] == 1:
            pixels = pixels.repeat(channels, axis=-1)
        elif pixels.shape[-1] != channels:  # the ITU-R 601 luma, as PIL computes it
            weights = np.array([0.299, 0.587, 0.114], dtype=np.float32)
            luma = np.rint(pixels.astype(np.float32) @ weights)
            pixels = luma[..., None].astype(np.uint8)
        self._pixels = torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2)
        self._mean, self._std = normalisation(config, channels)
        # the homogeneous pixel centres (3, H * W) between -1 and 1: x, y, 1
        height, width = self._pixels.shape[-2:]
        grid = F.affine_grid(torch.eye(2, 3)[None], [1, 1, height, width], align_corners=False)
        ones = torch.ones(height * width, 1)
        self._coordinates = torch.cat([grid.view(-1, 2), ones], 1).T.contiguous()

    def train_batches(
        self, batches: Sequence[np.ndarray], seed: int, epoch: int, start: int = 0
    ) -> Iterator[torch.Tensor]:
        """Yield the augmented tensors of ``batches[start:]``."""
        generator = torch.Generator()
        for number in range(start, len(batches)):
            pixels = self._pixels.index_select(0, torch.from_numpy(batches[number]))
            images = pixels.float().div_(255.0)
            if self.config.augmentation == "affine_noise":
                generator.manual_seed(derive(seed, "augmentation", epoch, number))
                images = self._augment(images, generator)
            yield self._normalise(images)

    def eval_batches(self, batch_size: int, scale: float = 1.0) -> Iterator[torch.Tensor]:
        """Yield all images in order."""
        height, width = (max(1, int(0.5 + scale * side)) for side in self._pixels.shape[-2:])
        for at in range(0, len(self._pixels), batch_size):
            rows = self._pixels[at : at + batch_size].permute(0, 2, 3, 1)
            images = resize(rows, (width, height)).permute(0, 3, 1, 2)
            yield self._normalise(images.float().div_(255.0))

    def _normalise(self, images: torch.Tensor) -> torch.Tensor:
        """Normalise in place: the images are copies already."""
        return images.sub_(self._mean).div_(self._std).contiguous(memory_format=torch.channels_last)

    def _augment(self, images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Apply one random affine map per image, then noise; both come from ``generator``."""
        config = self.config
        uniform = torch.rand(4, len(images), generator=generator) * 2 - 1
        angle = uniform[0] * math.radians(config.degrees)
        low, high = config.scale
        zoom = 1 / (low + (high - low) * (uniform[1] + 1) / 2)
        shift = uniform[2:] * 2 * config.translate  # grid coordinates span 2 per side
        cosine, sine = torch.cos(angle) * zoom, torch.sin(angle) * zoom
        rows = [torch.stack([cosine, -sine, shift[0]], 1), torch.stack([sine, cosine, shift[1]], 1)]
        # F.affine_grid gives the same bits by matrices three wide, several times slower
        grid = torch.stack(rows, 1).view(-1, 3) @ self._coordinates
        grid = grid.view(-1, 2, *images.shape[-2:]).permute(0, 2, 3, 1)
        moved = F.grid_sample(images, grid, align_corners=False)
        if config.noise:
            noise = torch.randn(moved.shape, generator=generator)
            moved = moved.add_(noise, alpha=config.noise)
        return moved
