"""Picture files for tests: noise, so that no two are equal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

CHANNELS = {"L": (), "RGB": (3,), "RGBA": (4,)}


def save(
    path: Path,
    seed: int = 0,
    mode: str = "RGB",
    size: tuple[int, int] = (24, 20),
    **options: object,
) -> None:
    """Writes a picture of (width, height) and its folder; ``options`` go to the format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(
        0, 256, (size[1], size[0], *CHANNELS[mode]), dtype=np.uint8
    )
    Image.fromarray(pixels).save(path, **options)
