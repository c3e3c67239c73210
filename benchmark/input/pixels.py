"""Images in memory: one augmentation call for a whole batch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
import torch.nn.functional as F

from benchmark.datasets.base import ImageSet
from benchmark.input.base import Input, normalisation
from benchmark.recipe import InputConfig
from benchmark.seeding import derive


class PixelInput(Input):
    """Rotates, shifts, zooms and adds noise to batches of images that lie in memory as uint8."""

    def __init__(self, image_set: ImageSet, config: InputConfig, channels: int):
        self.config, self.channels = config, channels
        pixels = image_set.pixels
        if pixels.shape[-1] != channels:
            pixels = pixels.repeat(channels, axis=-1) if pixels.shape[-1] == 1 else _grey(pixels)
        self._pixels = torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2)
        self._mean, self._std = normalisation(config, channels)

    def train_batches(
        self, batches: Sequence[np.ndarray], seed: int, epoch: int, start: int = 0
    ) -> Iterator[torch.Tensor]:
        """Yields the augmented tensors of ``batches[start:]``."""
        generator = torch.Generator()
        for place in range(start, len(batches)):
            images = self._pixels[torch.from_numpy(batches[place])].float() / 255.0
            if self.config.augmentation == "affine_noise":
                generator.manual_seed(derive(seed, "augmentation", epoch, place))
                images = self._augment(images, generator)
            yield self._normalise(images)

    def eval_batches(self, batch_size: int) -> Iterator[torch.Tensor]:
        """Yields all images in order."""
        for at in range(0, len(self._pixels), batch_size):
            yield self._normalise(self._pixels[at : at + batch_size].float() / 255.0)

    def _normalise(self, images: torch.Tensor) -> torch.Tensor:
        return ((images - self._mean) / self._std).contiguous(memory_format=torch.channels_last)

    def _augment(self, images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Applies one random affine map per image, then noise; both are drawn from ``generator``."""
        config = self.config
        uniform = torch.rand(4, len(images), generator=generator) * 2 - 1
        angle = uniform[0] * math.radians(config.degrees)
        low, high = config.scale
        zoom = 1 / (low + (high - low) * (uniform[1] + 1) / 2)
        shift = uniform[2:] * 2 * config.translate  # grid coordinates span 2 per side
        cosine, sine = torch.cos(angle) * zoom, torch.sin(angle) * zoom
        rows = [torch.stack([cosine, -sine, shift[0]], 1), torch.stack([sine, cosine, shift[1]], 1)]
        grid = F.affine_grid(torch.stack(rows, 1), list(images.shape), align_corners=False)
        moved = F.grid_sample(images, grid, align_corners=False)
        if config.noise:
            noise = torch.randn(moved.shape, generator=generator)
            moved = moved.add_(noise, alpha=config.noise)
        return moved


def _grey(pixels: np.ndarray) -> np.ndarray:
    """Returns the ITU-R 601 luma (N, H, W, 1) of colour pixels, as PIL computes it."""
    weights = np.array([0.299, 0.587, 0.114], dtype=np.float32)
    return np.rint(pixels.astype(np.float32) @ weights)[..., None].astype(np.uint8)
