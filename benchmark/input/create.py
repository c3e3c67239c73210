"""One input per image set: pixels in memory or image files, with seeded augmentation."""

from benchmark.core.errors import ConfigError, Problem
from benchmark.core.recipe_input import InputConfig, check_input
from benchmark.datasets.base import ImageSet
from benchmark.input.base import Input
from benchmark.input.files import FileInput
from benchmark.input.pixels import PixelInput


def create_input(image_set: ImageSet, config: InputConfig, channels: int) -> Input:
    """Return the input of ``image_set``; raise ConfigError with all conflicting options.

    Pixels in memory of the right size get batched tensor operations; all else is decoded and
    transformed image by image.
    """
    side = config.image_size
    fits = image_set.pixels is not None and image_set.pixels.shape[1:3] == (side, side)
    problems = check_input(config, channels)
    if config.augmentation == "affine_noise" and not fits:
        shape = "files" if image_set.pixels is None else f"{image_set.pixels.shape[1:3]} pixels"
        words = (
            f"'affine_noise' works on images in memory of image_size {side}, and this dataset has "
            f"{shape}; use 'crop_flip' or 'none'"
        )
        problems.append(Problem(words, "augmentation"))
    if problems:
        raise ConfigError("recipe section input", problems)
    unresized = config.augmentation == "none" and config.resize in (None, side)
    if fits and (config.augmentation == "affine_noise" or unresized):
        return PixelInput(image_set, config, channels)
    return FileInput(image_set, config, channels)
