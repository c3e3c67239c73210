"""Made-up photographs: smooth shapes with grain, so that a JPEG of them has the bytes per pixel of a photograph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

PER_CLASS = 8
QUALITY = 90
PATCH = 16  # pixels between independent colours
GRAIN = 8.0  # standard deviation of the noise, grey levels


def write_jpegs(root: Path, size: tuple[int, int], count: int) -> list[str]:
    """Writes ``count`` JPEGs of ``size`` (width, height) into class folders below ``root``; returns their paths
    relative to it, in the order of their names."""
    chance = np.random.default_rng(0)
    paths = [f"class{number // PER_CLASS:03d}/{number:05d}.jpg" for number in range(count)]
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        picture(size, chance).save(root / path, quality=QUALITY)
    return paths


def picture(size: tuple[int, int], chance: np.random.Generator) -> Image.Image:
    """Returns one picture of ``size`` (width, height)."""
    width, height = size
    colours = chance.integers(0, 256, (height // PATCH + 2, width // PATCH + 2, 3), dtype=np.uint8)
    smooth = np.asarray(
        Image.fromarray(colours).resize(size, Image.Resampling.BICUBIC), dtype=np.float32
    )
    grain = chance.normal(0.0, GRAIN, (height, width, 1)).astype(np.float32)
    return Image.fromarray((smooth + grain).clip(0, 255).astype(np.uint8))
