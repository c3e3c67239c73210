"""Made-up photographs: smooth shapes with grain, so that a JPEG has the bytes of a photograph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

PER_CLASS = 8
QUALITY = 90
PATCH = 16  # pixels between independent colours
GRAIN = 8.0  # standard deviation of the noise, grey levels


def write_jpegs(root: Path, size: tuple[int, int], count: int) -> list[str]:
    """Write JPEGs of ``size`` (width, height) into class folders; return their relative paths."""
    generator = np.random.default_rng(0)
    paths = [f"class{number // PER_CLASS:03d}/{number:05d}.jpg" for number in range(count)]
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        photograph(size, generator).save(root / path, quality=QUALITY)
    return paths


def photograph(size: tuple[int, int], generator: np.random.Generator) -> Image.Image:
    """Return one image of ``size`` (width, height)."""
    width, height = size
    patches = (height // PATCH + 2, width // PATCH + 2, 3)
    colours = Image.fromarray(generator.integers(0, 256, patches, dtype=np.uint8))
    smooth = np.asarray(colours.resize(size, Image.Resampling.BICUBIC), dtype=np.float32)
    grain = generator.normal(0.0, GRAIN, (height, width, 1)).astype(np.float32)
    return Image.fromarray((smooth + grain).clip(0, 255).astype(np.uint8))
