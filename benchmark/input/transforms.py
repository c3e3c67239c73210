"""Views of one image: the crops and sizes of the papers' recipes, with explicit randomness.

A view depends only on the size of an image, so that it is known before the image is decoded: a JPEG
may then be decoded at a half, a quarter or an eighth of its size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

from benchmark.core.recipe import InputConfig

TRIES = 10  # attempts to fit a random crop before the centre is taken
DIVISORS = (8, 4, 2)  # sizes to which a JPEG can be decoded directly

Size = tuple[int, int]  # width, height
Box = tuple[int, int, int, int]  # left, top, right, bottom


@dataclass(frozen=True)
class View:
    """The square of ``side`` pixels that a network sees of an image of size ``full``.

    resized    size of the whole image after the first step
    box        part of it that is then resized to the square
    mirrored   whether left and right are exchanged in the last step
    """

    full: Size
    resized: Size
    box: Box
    side: int
    mirrored: bool = False

    @property
    def divisor(self) -> int:
        """The largest number by which the sides may be divided without enlarging later."""
        if self.resized == self.full:
            left, top, right, bottom = self.box
            largest = min(right - left, bottom - top) / self.side
        else:
            largest = min(self.full[0] / self.resized[0], self.full[1] / self.resized[1])
        return next((number for number in DIVISORS if number <= largest), 1)

    def of(self, picture: Image.Image) -> torch.Tensor:
        """Return the view, uint8 (side, side, C).

        ``picture`` has the size ``full``, or its sides were divided by ``divisor`` in decoding.
        """
        (left, top, right, bottom), square = self.box, (self.side, self.side)
        part = 1 if picture.size == self.full else self.divisor
        if part > 1 and self.resized == self.full:
            box = (left / part, top / part, right / part, bottom / part)
            return self._mirrored(
                pixels_of(picture.resize(square, Image.Resampling.BILINEAR, box=box))
            )
        if any(length % part for length in self.full):
            # divided sides are rounded up: leave out what sticks out beyond the image
            extent = (0, 0, self.full[0] / part, self.full[1] / part)
            picture = picture.resize(self.resized, Image.Resampling.BILINEAR, box=extent)
        pixels = resize(pixels_of(picture), self.resized)
        return self._mirrored(resize(pixels[top:bottom, left:right], square))

    def _mirrored(self, pixels: torch.Tensor) -> torch.Tensor:
        return pixels.flip(1) if self.mirrored else pixels


def pixels_of(picture: Image.Image) -> torch.Tensor:
    """Return the pixels, uint8 (H, W, C)."""
    pixels = torch.from_numpy(np.array(picture))
    return pixels if pixels.ndim == 3 else pixels.unsqueeze(-1)


def resize(pixels: torch.Tensor, size: Size) -> torch.Tensor:
    """Return uint8 (H, W, C) pixels resized to (width, height) by PIL's bilinear filter.

    torch does the same integer arithmetic, to one grey level, two to three times as fast with
    vector instructions and with the same result without them.
    """
    width, height = size
    if pixels.shape[:2] == (height, width):
        return pixels
    images = pixels.permute(2, 0, 1).unsqueeze(0)
    resized = F.interpolate(images, (height, width), mode="bilinear", antialias=True)
    return resized[0].permute(1, 2, 0)


def train_view(size: Size, config: InputConfig, generator: np.random.Generator) -> View:
    """Return the training view: resize, random resized crop and flip; or the evaluation view."""
    if config.augmentation == "none":
        return eval_view(size, config)
    resized = size if config.resize is None else resized_size(size, config.resize, keep_aspect=True)
    box = random_crop_box(resized, config, generator)
    mirrored = config.flip and generator.random() < 0.5
    return View(size, resized, box, config.image_size, mirrored)


def eval_view(size: Size, config: InputConfig) -> View:
    """Return the evaluation view: resize to a square or the short side, then crop the centre."""
    side = config.image_size
    resized = resized_size(size, config.resize or side, config.keep_aspect)
    left, top = (round((length - side) / 2) for length in resized)
    return View(size, resized, (left, top, left + side, top + side), side)


def resized_size(size: Size, side: int, keep_aspect: bool) -> Size:
    """Return the size with short side ``side``, or that of a square."""
    if not keep_aspect:
        return side, side
    width, height = size
    scale = side / min(width, height)
    return max(side, round(width * scale)), max(side, round(height * scale))


def random_crop_box(size: Size, config: InputConfig, generator: np.random.Generator) -> Box:
    """Return a box with area uniform in ``crop_area`` and log aspect uniform in ``crop_aspect``.

    If no draw fits, it is the largest centre crop within the allowed aspects.
    """
    width, height = size
    smallest, largest = config.crop_area
    narrowest, widest = (math.log(value) for value in config.crop_aspect)
    for _ in range(TRIES):
        area = width * height * generator.uniform(smallest, largest)
        aspect = math.exp(generator.uniform(narrowest, widest))
        crop_width, crop_height = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < crop_width <= width and 0 < crop_height <= height:
            left = int(generator.integers(0, width - crop_width + 1))
            top = int(generator.integers(0, height - crop_height + 1))
            return left, top, left + crop_width, top + crop_height
    aspect = min(max(width / height, config.crop_aspect[0]), config.crop_aspect[1])
    crop_width, crop_height = min(width, round(height * aspect)), min(height, round(width / aspect))
    left, top = (width - crop_width) // 2, (height - crop_height) // 2
    return left, top, left + crop_width, top + crop_height
