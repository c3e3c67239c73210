"""Views of one image: the crops, sizes and colours that the papers' recipes use.

The size of an image decides its view before it is decoded, so that only what the view needs has to
be computed. Sizes and boxes are those of torchvision's Resize, CenterCrop, RandomCrop and
RandomResizedCrop on PIL images.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageEnhance

from benchmark.core.recipe import InputConfig

Size = tuple[int, int]  # width, height
TRIES = 10  # attempts to fit a random crop before the centre is taken
DIVISORS = (8, 4, 2)  # of the sides of a JPEG, which its transform can be inverted to directly
COLOURS = ("brightness", "contrast", "saturation", "hue")

Box = tuple[int, int, int, int]  # left, top, right, bottom


def pixels_of(picture: Image.Image | np.ndarray) -> torch.Tensor:
    """Return the pixels, uint8 (H, W, C)."""
    if isinstance(picture, Image.Image):
        picture = np.array(picture)
    pixels = torch.from_numpy(picture)
    return pixels if pixels.ndim == 3 else pixels.unsqueeze(-1)


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


def turn(pixels: torch.Tensor, degrees: float) -> torch.Tensor:
    """Return uint8 (H, W, C) pixels turned counter-clockwise about their centre, corners black."""
    picture = Image.fromarray(pixels.squeeze(-1).numpy())
    return pixels_of(picture.rotate(degrees, Image.Resampling.BILINEAR))


@dataclass(frozen=True)
class Jitter:
    """A change of colours: steps in the order in which they are applied.

    steps    name and amount: factors of brightness, contrast and saturation, 1 for no change, and
             a shift of the hue as a share of the colour circle, 0 for no change
    """

    steps: tuple[tuple[str, float], ...]

    @staticmethod
    def draw(generator: np.random.Generator, limits: dict[str, float]) -> Jitter | None:
        """Return a jitter within ``limits``, largest changes by name; None when all are 0.

        Factors are uniform between 1 - limit (at least 0) and 1 + limit, shifts of the hue between
        - limit and limit, and the order is random, as in torchvision's ColorJitter.
        """
        names = [name for name, limit in limits.items() if limit]
        if not names:
            return None
        steps = []
        for number in generator.permutation(len(names)).tolist():
            name, limit = names[number], limits[names[number]]
            low, high = (-limit, limit) if name == "hue" else (max(0.0, 1 - limit), 1 + limit)
            steps.append((name, float(generator.uniform(low, high))))
        return Jitter(tuple(steps))

    def of(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return the changed pixels, uint8 (H, W, C); grey has no saturation and no hue."""
        picture = Image.fromarray(pixels.squeeze(-1).numpy())
        for name, amount in self.steps:
            picture = _CHANGES[name](picture, amount)
        return pixels_of(picture)


def _shift_hue(picture: Image.Image, share: float) -> Image.Image:
    if picture.mode == "L":
        return picture
    hue, saturation, value = picture.convert("HSV").split()
    shifted = np.asarray(hue) + np.int64(share * 255).astype(np.uint8)  # modulo 256
    return Image.merge("HSV", (Image.fromarray(shifted), saturation, value)).convert("RGB")


_CHANGES: dict[str, Callable[[Image.Image, float], Image.Image]] = {
    "brightness": lambda picture, factor: ImageEnhance.Brightness(picture).enhance(factor),
    "contrast": lambda picture, factor: ImageEnhance.Contrast(picture).enhance(factor),
    "saturation": lambda picture, factor: ImageEnhance.Color(picture).enhance(factor),
    "hue": _shift_hue,
}


@dataclass(frozen=True)
class View:
    """The ``size`` pixels that a network is shown of an image of ``full`` pixels.

    resized    size that the whole image is brought to first
    box        what is cut out of that and then brought to ``size``
    mirrored   whether left and right are exchanged
    degrees    by how much the resized image is turned before it is cut
    jitter     change of colours at last
    """

    full: Size
    resized: Size
    box: Box
    size: Size
    mirrored: bool = False
    degrees: float = 0.0
    jitter: Jitter | None = None

    @property
    def divisor(self) -> int:
        """Return the largest divisor of the sides that needs nothing to be enlarged."""
        if self.resized == self.full:
            cut = (self.box[2] - self.box[0], self.box[3] - self.box[1])
            least = min(part / side for part, side in zip(cut, self.size, strict=True))
        else:
            least = min(whole / part for whole, part in zip(self.full, self.resized, strict=True))
        return next((number for number in DIVISORS if number <= least), 1)

    def of(self, picture: Image.Image | np.ndarray) -> torch.Tensor:
        """Return the view, uint8 (height, width, C), of a picture of size ``full``.

        The sides of an image of Pillow may have been divided by ``divisor`` when it was decoded.
        """
        left, top, right, bottom = self.box
        divided = None
        if isinstance(picture, Image.Image) and picture.size != self.full:
            divided = picture
        part = 1 if divided is None else self.divisor
        if divided is not None and part > 1 and self.resized == self.full and not self.degrees:
            box = (left / part, top / part, right / part, bottom / part)
            pixels = pixels_of(divided.resize(self.size, Image.Resampling.BILINEAR, box=box))
        else:
            if divided is not None and any(length % part for length in self.full):
                # Divided sides are rounded up: what sticks out beyond the image is left out.
                extent = (0, 0, self.full[0] / part, self.full[1] / part)
                picture = divided.resize(self.resized, Image.Resampling.BILINEAR, box=extent)
            pixels = resize(pixels_of(picture), self.resized)
            if self.degrees:
                pixels = turn(pixels, self.degrees)
            pixels = resize(pixels[top:bottom, left:right], self.size)
        if self.mirrored:
            pixels = pixels.flip(1)
        return pixels if self.jitter is None else self.jitter.of(pixels)


def train_view(size: Size, config: InputConfig, generator: np.random.Generator) -> View:
    """Return the training view: resized, cropped at random and flipped, or as in evaluation."""
    if config.augmentation == "none":
        return eval_view(size, config)
    side = config.image_size
    resized = size
    if config.resize is not None and config.train_resize != "none":
        resized = resized_size(size, config.resize, square=config.train_resize == "square")
    if config.crop == "random":
        box = random_box(resized, side, generator)
    else:
        box = random_resized_box(resized, config, generator)
    mirrored = config.flip and generator.random() < 0.5
    degrees = generator.uniform(-config.rotation, config.rotation) if config.rotation else 0.0
    jitter = Jitter.draw(generator, {name: getattr(config, name) for name in COLOURS})
    return View(size, resized, box, (side, side), mirrored, degrees, jitter)


def eval_view(size: Size, config: InputConfig, scale: float = 1.0) -> View:
    """Return the evaluation view, brought to ``scale`` times its sides.

    It is the centre of the resized image, or the whole of it at its native size.
    """
    side = config.image_size
    if config.native_size:
        resized = shrunk_size(size, config.max_side)
        box = (0, 0, *resized)
    else:
        resized = resized_size(size, config.resize or side, square=not config.keep_aspect)
        left, top = (round((length - side) / 2) for length in resized)
        box = (left, top, left + side, top + side)
    shown = (box[2] - box[0], box[3] - box[1])
    width, height = (max(1, int(0.5 + scale * length)) for length in shown)
    return View(size, resized, box, (width, height))


def resized_size(size: Size, side: int, *, square: bool) -> Size:
    """Return the size of a square, or with the shorter side ``side``, the other rounded down."""
    if square:
        return side, side
    width, height = size
    if width <= height:
        return side, int(side * height / width)
    return int(side * width / height), side


def shrunk_size(size: Size, max_side: int | None) -> Size:
    """Return the size itself, or that with the longer side ``max_side`` where it is larger."""
    scale = min(1.0, (max_side or max(size)) / max(size))
    width, height = (max(1, round(scale * length)) for length in size)
    return width, height


def random_box(size: Size, side: int, generator: np.random.Generator) -> Box:
    """Return a square of ``side`` pixels anywhere in an image that holds it."""
    left, top = (int(generator.integers(0, length - side + 1)) for length in size)
    return left, top, left + side, top + side


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
        crop_width, crop_height = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < crop_width <= width and 0 < crop_height <= height:
            left = int(generator.integers(0, width - crop_width + 1))
            top = int(generator.integers(0, height - crop_height + 1))
            return left, top, left + crop_width, top + crop_height
    aspect = min(max(width / height, aspects[0]), aspects[1])
    crop_width = max(1, min(width, round(height * aspect)))
    crop_height = max(1, min(height, round(width / aspect)))
    left, top = (width - crop_width) // 2, (height - crop_height) // 2
    return left, top, left + crop_width, top + crop_height
