"""What is done to the pixels of one picture: resized, turned, its colours jittered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageEnhance

Size = tuple[int, int]  # width, height


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
