"""From images to tensors: one input per image set, in memory or from files, with seeded augmentation."""

from __future__ import annotations

from benchmark.datasets.base import ImageSet
from benchmark.errors import ConfigError
from benchmark.input.base import Input
from benchmark.input.files import FileInput
from benchmark.input.pixels import PixelInput
from benchmark.recipe import InputConfig

__all__ = ["Input", "create_input"]


def create_input(image_set: ImageSet, config: InputConfig, channels: int) -> Input:
    """Returns the input of ``image_set``: batched tensor operations for pixels in memory of the right size,
    decoding and per-image transforms otherwise. Raises ConfigError for options that do not go together.
    """
    if config.augmentation == "affine_noise":
        if image_set.pixels is None or image_set.pixels.shape[1:3] != (config.image_size, config.image_size):
            shape = "files" if image_set.pixels is None else f"{image_set.pixels.shape[1:3]} pixels"
            raise ConfigError(
                "recipe section input",
                [
                    f"augmentation 'affine_noise' works on images in memory of image_size "
                    f"{config.image_size}, and this dataset has {shape}; use 'crop_flip' or 'none'"
                ],
            )
        return PixelInput(image_set, config, channels)
    if image_set.pixels is not None and config.augmentation == "none":
        same = image_set.pixels.shape[1:3] == (config.image_size, config.image_size)
        if same and config.resize in (None, config.image_size):
            return PixelInput(image_set, config, channels)
    return FileInput(image_set, config, channels)
