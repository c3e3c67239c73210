"""Views of one image: the crops, sizes and colours that the papers' recipes use.

The size of an image decides its view before the image is decoded, so that the decoder computes only
what the view needs. Sizes and boxes are those of torchvision's Resize, CenterCrop, RandomCrop and
RandomResizedCrop on PIL images.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageEnhance

from benchmark.core.recipe import InputConfig

Size = tuple[int, int]  # width, height
TRIES = 10  # attempts to fit a random crop before the centre is taken
DIVISORS = (8, 4, 2)  # of the sides of a JPEG, which its transform can be inverted to directly

Box = tuple[int, int, int, int]  # left, top, right, bottom


def pixels_of(picture: Image.Image | np.ndarray) -> torch.Tensor:
    """Return the pixels, uint8 (H, W, C)."""
    if isinstance(picture, Image.Image):
        picture = np.array(picture)
    pixels = torch.from_numpy(picture)
    if pixels.ndim == 3:
        return pixels
    return pixels.unsqueeze(-1)


def resize(pixels: torch.Tensor, size: Size) -> torch.Tensor:
    """Return uint8 (..., H, W, C) pixels resized as PIL's bilinear filter does, to one grey level.

    The integer arithmetic is PIL's, and the same on processors with and without vector
    instructions, which make it two to three times as fast as PIL.
    """
    width, height = size
    if pixels.shape[-3:-1] == (height, width):
        return pixels
    images = pixels.view(-1, *pixels.shape[-3:]).permute(0, 3, 1, 2)
    resized = F.interpolate(images, (height, width), mode="bilinear", antialias=True)
    return resized.permute(0, 2, 3, 1).reshape(*pixels.shape[:-3], height, width, -1)


def _shift_hue(picture: Image.Image, share: float) -> Image.Image:
    if picture.mode == "L":
        return picture
    hue, saturation, value = picture.convert("HSV").split()
    shift = np.int64(share * 255).astype(np.uint8)
    shifted = Image.fromarray(np.asarray(hue) + shift)  # modulo 256
    return Image.merge("HSV", (shifted, saturation, value)).convert("RGB")


# by factors, 1 for no change; the hue by a share of the colour circle, 0 for no change
CHANGES: dict[str, Callable[[Image.Image, float], Image.Image]] = {
    "brightness": lambda picture, factor: ImageEnhance.Brightness(picture).enhance(factor),
    "contrast": lambda picture, factor: ImageEnhance.Contrast(picture).enhance(factor),
    "saturation": lambda picture, factor: ImageEnhance.Color(picture).enhance(factor),
    "hue": _shift_hue,
}


@dataclass(frozen=True)
class View:
    """What a network is shown of an image: ``size`` pixels, made of ``full`` pixels.

    resized    size that the whole image is brought to first
    box        what is cut out of the resized image and then brought to ``size``
    mirrored   whether left and right are exchanged
    degrees    by how much the resized image is turned before it is cut, corners black
    jitter     changes of colours at last, as ``CHANGES`` names them, and their amounts, in order;
               grey has no saturation and no hue
    """

    full: Size
    resized: Size
    box: Box
    size: Size
    mirrored: bool = False
    degrees: float = 0.0
    jitter: tuple[tuple[str, float], ...] = ()

    @property
    def divisor(self) -> int:
        """Return the largest divisor of the sides that needs nothing to be enlarged."""
        if self.resized == self.full:
            left, top, right, bottom = self.box
            width, height = self.size
            least = min((right - left) / width, (bottom - top) / height)
        else:
            width, height = self.resized
            least = min(self.full[0] / width, self.full[1] / height)
        return next((number for number in DIVISORS if number <= least), 1)

    def of(self, picture: Image.Image | np.ndarray) -> torch.Tensor:
        """Return the view, uint8 (height, width, C), of a picture of size ``full``.

        The sides of an image of Pillow may have been divided by ``divisor`` when it was decoded.
        """
        left, top, right, bottom = self.box
        divisor = 1
        divided: Any = picture
        if isinstance(picture, Image.Image) and picture.size != self.full:
            divisor = self.divisor
        if divisor > 1 and self.resized == self.full and not self.degrees:
            box = (left / divisor, top / divisor, right / divisor, bottom / divisor)
            view = divided.resize(self.size, Image.Resampling.BILINEAR, box=box)
            pixels = pixels_of(view)
        else:
            if any(length % divisor for length in self.full):
                # Divided sides are rounded up: what sticks out beyond the image is left out.
                extent = (0, 0, self.full[0] / divisor, self.full[1] / divisor)
                picture = divided.resize(self.resized, Image.Resampling.BILINEAR, box=extent)
            pixels = resize(pixels_of(picture), self.resized)
            if self.degrees:
                image = Image.fromarray(pixels.squeeze(-1).numpy())
                turned = image.rotate(self.degrees, Image.Resampling.BILINEAR)
                pixels = pixels_of(turned)
            pixels = resize(pixels[top:bottom, left:right], self.size)
        if self.mirrored:
            pixels = pixels.flip(1)
        if self.jitter:
            shown = Image.fromarray(pixels.squeeze(-1).numpy())
            for name, amount in self.jitter:
                shown = CHANGES[name](shown, amount)
            pixels = pixels_of(shown)
        return pixels


def train_view(size: Size, config: InputConfig, generator: np.random.Generator) -> View:
    """Return the training view: resized, cropped at random and flipped, or as in evaluation."""
    if config.augmentation == "none":
        return eval_view(size, config)
    side = config.image_size
    resized = size
    if config.resize is not None and config.train_resize != "none":
        resized = resized_size(size, config.resize, square=config.train_resize == "square")
    if config.crop == "random":
        left, top = (int(generator.integers(0, length - side + 1)) for length in resized)
        box = left, top, left + side, top + side
    else:
        box = random_resized_box(resized, config, generator)
    mirrored = config.flip and generator.random() < 0.5
    degrees = 0.0
    if config.rotation:
        degrees = generator.uniform(-config.rotation, config.rotation)
    # as torchvision's ColorJitter: factors within the limit of 1, and in random order
    limits = [(name, limit) for name in CHANGES if (limit := getattr(config, name))]
    jitter = []
    for number in generator.permutation(len(limits)).tolist():
        name, limit = limits[number]
        if name == "hue":
            amount = generator.uniform(-limit, limit)
        else:
            amount = generator.uniform(max(0.0, 1 - limit), 1 + limit)
        jitter.append((name, float(amount)))
    return View(size, resized, box, (side, side), mirrored, degrees, tuple(jitter))


def eval_view(size: Size, config: InputConfig, scale: float = 1.0) -> View:
    """Return the evaluation view, brought to ``scale`` times its sides.

    It is the centre of the resized image, or the whole of it at its native size, shrunk to
    ``max_side`` where it is larger.
    """
    side = config.image_size
    if config.native_size:
        shrink = min(1.0, (config.max_side or max(size)) / max(size))
        whole_width, whole_height = (max(1, round(shrink * length)) for length in size)
        resized = (whole_width, whole_height)
        box = (0, 0, whole_width, whole_height)
    else:
        resized = resized_size(size, config.resize or side, square=not config.keep_aspect)
        left, top = (round((length - side) / 2) for length in resized)
        box = (left, top, left + side, top + side)
    left, top, right, bottom = box
    width = max(1, int(0.5 + scale * (right - left)))
    height = max(1, int(0.5 + scale * (bottom - top)))
    return View(size, resized, box, (width, height))


def resized_size(size: Size, side: int, *, square: bool) -> Size:
    """Return the size of a square, or with the shorter side ``side``, the other rounded down."""
    if square:
        return side, side
    width, height = size
    if width <= height:
        return side, int(side * height / width)
    return int(side * width / height), side


def random_resized_box(size: Size, config: InputConfig, generator: np.random.Generator) -> Box:
    """Return a box with area uniform in ``crop_area`` and log aspect uniform in ``crop_aspect``.

    When no draw fits, the largest centre crop within the allowed aspects is taken.
    """
    width, height = size
    (least, most), aspects = config.crop_area, config.crop_aspect
    narrow, wide = (math.log(value) for value in aspects)
    for _ in range(TRIES):
        area = width * height * generator.uniform(least, most)
        aspect = math.exp(generator.uniform(narrow, wide))
        crop_width = round(math.sqrt(area * aspect))
        crop_height = round(math.sqrt(area / aspect))
        if 0 < crop_width <= width and 0 < crop_height <= height:
            left = int(generator.integers(0, width - crop_width + 1))
            top = int(generator.integers(0, height - crop_height + 1))
            return left, top, left + crop_width, top + crop_height
    aspect = min(max(width / height, aspects[0]), aspects[1])
    crop_width = max(1, min(width, round(height * aspect)))
    crop_height = max(1, min(height, round(width / aspect)))
    left = (width - crop_width) // 2
    top = (height - crop_height) // 2
    return left, top, left + crop_width, top + crop_height
