"""Transforms of one image: the crops and sizes that the papers' recipes use, with explicit chance."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image

from benchmark.recipe import InputConfig

TRIES = 10  # attempts to fit a random crop before the centre is taken


def train_transform(picture: Image.Image, config: InputConfig, generator: np.random.Generator) -> Image.Image:
    """Returns the training view: resize, then a random resized crop and flip (``crop_flip``) or the centre."""
    if config.augmentation == "none":
        return eval_transform(picture, config)
    if config.resize is not None:
        picture = resize(picture, config.resize, keep_aspect=True)
    box = random_crop_box(picture.size, config, generator)
    size = (config.image_size, config.image_size)
    view = picture.resize(size, Image.Resampling.BILINEAR, box=box)
    mirrored = config.flip and generator.random() < 0.5
    return view.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else view


def eval_transform(picture: Image.Image, config: InputConfig) -> Image.Image:
    """Returns the evaluation view: resize (to a square, or by the short side), then the centre crop."""
    side = config.image_size
    picture = resize(picture, config.resize or side, config.keep_aspect)
    left, top = (round((length - side) / 2) for length in picture.size)
    return picture.crop((left, top, left + side, top + side))


def resize(picture: Image.Image, side: int, keep_aspect: bool) -> Image.Image:
    """Returns the picture with short side ``side``, or squeezed into a square."""
    if not keep_aspect:
        return picture.resize((side, side), Image.Resampling.BILINEAR)
    width, height = picture.size
    scale = side / min(width, height)
    size = (max(side, round(width * scale)), max(side, round(height * scale)))
    return picture.resize(size, Image.Resampling.BILINEAR)


def random_crop_box(
    size: tuple[int, int], config: InputConfig, generator: np.random.Generator
) -> tuple[int, int, int, int]:
    """Returns (left, top, right, bottom): area uniform in ``crop_area``, log aspect uniform in ``crop_aspect``.

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
