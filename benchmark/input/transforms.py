"""Views of one image: the crops and sizes that the papers' recipes use, with explicit chance.

A view is decided by the size of an image alone, before it is decoded, so that only what the view needs is computed:
a JPEG may be decoded at a half, a quarter or an eighth of its size, and of a resized image only the part that is
cut out is made.
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
DIVISORS = (8, 4, 2)  # of the sides of a JPEG, which its transform can be inverted to directly

Size = tuple[int, int]  # width, height
Box = tuple[int, int, int, int]  # left, top, right, bottom


@dataclass(frozen=True)
class View:
    """The square of ``side`` pixels that a network is shown of an image of ``full`` pixels.

    resized    size that the whole image is brought to first
    box        what is cut out of that and then brought to the square
    mirrored   whether left and right are exchanged at last
    """

    full: Size
    resized: Size
    box: Box
    side: int
    mirrored: bool = False

    @property
    def divisor(self) -> int:
        """Returns the largest number by which the sides may be divided so that nothing has to be enlarged for it."""
        if self.resized == self.full:
            least = [
                (end - start) / self.side
                for start, end in zip(self.box[:2], self.box[2:], strict=True)
            ]
        else:
            least = [whole / part for whole, part in zip(self.full, self.resized, strict=True)]
        return next((number for number in DIVISORS if number <= min(least)), 1)

    def of(self, picture: Image.Image) -> torch.Tensor:
        """Returns the view, uint8 (side, side, C), of a picture of size ``full``, or of one whose sides were divided
        by ``divisor`` when it was decoded."""
        (left, top, right, bottom), square = self.box, (self.side, self.side)
        part = 1 if picture.size == self.full else self.divisor
        if part > 1 and self.resized == self.full:
            box = (left / part, top / part, right / part, bottom / part)
            return self._mirrored(
                pixels_of(picture.resize(square, Image.Resampling.BILINEAR, box=box))
            )
        if any(length % part for length in self.full):
            # Divided sides are rounded up: what sticks out beyond the image is left out, to a fraction of a pixel.
            extent = (0, 0, self.full[0] / part, self.full[1] / part)
            picture = picture.resize(self.resized, Image.Resampling.BILINEAR, box=extent)
        pixels = resize(pixels_of(picture), self.resized)
        return self._mirrored(resize(pixels[top:bottom, left:right], square))

    def _mirrored(self, pixels: torch.Tensor) -> torch.Tensor:
        return pixels.flip(1) if self.mirrored else pixels


def pixels_of(picture: Image.Image) -> torch.Tensor:
    """Returns the pixels, uint8 (H, W, C)."""
    pixels = torch.from_numpy(np.array(picture))
    return pixels if pixels.ndim == 3 else pixels.unsqueeze(-1)


def resize(pixels: torch.Tensor, size: Size) -> torch.Tensor:
    """Returns uint8 (H, W, C) pixels resized to (width, height) as PIL's bilinear filter does, to one grey level.

    The integer arithmetic is PIL's, and the same on processors with and without vector instructions, which make it
    two to three times as fast as PIL.
    """
    width, height = size
    if pixels.shape[:2] == (height, width):
        return pixels
    images = pixels.permute(2, 0, 1).unsqueeze(0)
    return F.interpolate(images, (height, width), mode="bilinear", antialias=True)[0].permute(
        1, 2, 0
    )


def train_view(size: Size, config: InputConfig, generator: np.random.Generator) -> View:
    """Returns the training view: resize, then a random resized crop and flip (``crop_flip``) or the centre."""
    if config.augmentation == "none":
        return eval_view(size, config)
    resized = size if config.resize is None else resized_size(size, config.resize, keep_aspect=True)
    box = random_crop_box(resized, config, generator)
    mirrored = config.flip and generator.random() < 0.5
    return View(size, resized, box, config.image_size, mirrored)


def eval_view(size: Size, config: InputConfig) -> View:
    """Returns the evaluation view: resize (to a square, or by the short side), then the centre crop."""
    side = config.image_size
    resized = resized_size(size, config.resize or side, config.keep_aspect)
    left, top = (round((length - side) / 2) for length in resized)
    return View(size, resized, (left, top, left + side, top + side), side)


def resized_size(size: Size, side: int, keep_aspect: bool) -> Size:
    """Returns the size with short side ``side``, or that of a square."""
    if not keep_aspect:
        return side, side
    width, height = size
    scale = side / min(width, height)
    return max(side, round(width * scale)), max(side, round(height * scale))


def random_crop_box(size: Size, config: InputConfig, generator: np.random.Generator) -> Box:
    """Returns a box with area uniform in ``crop_area`` and log aspect uniform in ``crop_aspect``.

    When no draw fits, the largest centre crop within the allowed aspects is taken.
    """
    width, height = size
    logs = [math.log(value) for value in config.crop_aspect]
    for _ in range(TRIES):
        area = width * height * generator.uniform(*config.crop_area)
        aspect = math.exp(generator.uniform(*logs))
        crop_width, crop_height = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < crop_width <= width and 0 < crop_height <= height:
            left = int(generator.integers(0, width - crop_width + 1))
            top = int(generator.integers(0, height - crop_height + 1))
            return left, top, left + crop_width, top + crop_height
    aspect = min(max(width / height, config.crop_aspect[0]), config.crop_aspect[1])
    crop_width, crop_height = min(width, round(height * aspect)), min(height, round(width / aspect))
    left, top = (width - crop_width) // 2, (height - crop_height) // 2
    return left, top, left + crop_width, top + crop_height
