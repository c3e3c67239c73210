"""The recipe's section ``input``: how images become tensors."""

from dataclasses import dataclass
from typing import Literal

from benchmark.core.errors import Problem
from benchmark.core.options import option

MOST_RATIO = 100.0  # of sides, as images may have
MOST_SCALE = 1000.0  # of pixels in [0, 1]; beyond it a network's numbers are none, not its loss's


@dataclass(frozen=True, kw_only=True)
class InputConfig:
    """How images become tensors, in training and in evaluation."""

    augmentation: Literal["none", "affine_noise", "crop_flip"] = option(
        "none", help="training augmentation"
    )
    image_size: int = option(
        224, at_least=8, at_most=10_000, help="side of the network's input, pixels"
    )
    resize: int | None = option(
        None,
        help="side before cropping, pixels; null: image_size in evaluation, no resize in training",
    )
    keep_aspect: bool = option(
        False, help="evaluation resize keeps the aspect ratio (short side = resize)"
    )
    native_size: bool = option(
        False, added=True, help="evaluation shows whole images at their own size"
    )
    max_side: int | None = option(
        None,
        at_least=8,
        added=True,
        help="native_size: larger images are shrunk to this longer side, pixels",
    )
    train_resize: Literal["none", "short_side", "square"] = option(
        "short_side",
        added=True,
        help="crop_flip: what of an image is brought to 'resize', where that is given, before the "
        "crop",
    )
    crop: Literal["random_resized", "random"] = option(
        "random_resized",
        added=True,
        help="crop_flip: a box of random area and aspect ratio, brought to image_size, or a box "
        "of image_size pixels",
    )
    crop_area: list[float] = option(
        [0.16, 1.0], help="crop_flip: range of the crop's share of the area"
    )
    crop_aspect: list[float] = option(
        [0.75, 1.3333], help="crop_flip: range of the crop's aspect ratio"
    )
    flip: bool = option(True, help="crop_flip: mirror half of the images")
    rotation: float = option(
        0.0,
        added=True,
        at_least=0.0,
        at_most=180.0,
        help="crop_flip: largest rotation before the crop, degrees",
    )
    brightness: float = option(
        0.0, at_least=0.0, added=True, help="crop_flip: largest change of the factor"
    )
    contrast: float = option(
        0.0, at_least=0.0, added=True, help="crop_flip: largest change of the factor"
    )
    saturation: float = option(
        0.0, at_least=0.0, added=True, help="crop_flip: largest change of the factor"
    )
    hue: float = option(
        0.0,
        at_least=0.0,
        at_most=0.5,
        added=True,
        help="crop_flip: largest shift, share of the circle",
    )
    decoding: Literal["reduced", "upright", "stored"] = option(
        "reduced",
        added=True,
        help="upright: turned by the EXIF tag, transparency on white; reduced: upright, and JPEGs "
        "only as large as the view needs; stored: as PIL converts them, like the papers' code",
    )
    degrees: float = option(10.0, at_least=0.0, help="affine_noise: largest rotation, degrees")
    translate: float = option(
        0.08, at_least=0.0, at_most=0.5, help="affine_noise: largest shift, share of side"
    )
    scale: list[float] = option([0.85, 1.15], help="affine_noise: range of the zoom")
    noise: float = option(
        0.1,
        at_least=0.0,
        at_most=1e3,
        help="affine_noise: sd of Gaussian noise, in units of full scale",
    )
    mean: list[float] = option(
        [0.485, 0.456, 0.406], help="subtracted per channel after scaling to [0, 1]"
    )
    std: list[float] = option([0.229, 0.224, 0.225], help="divided by per channel")
    own_normalisation: bool = option(
        False,
        added=True,
        help="mean and std differ on purpose from those that the weights were pretrained with",
    )
    workers: int = option(
        0,
        at_least=0,
        at_most=1_000,
        help="processes that decode images; 0 decodes in the training process",
    )


def check_input(config: InputConfig, channels: int) -> list[Problem]:
    """Return what is wrong with the input options of a network of ``channels``."""
    found = []
    if config.resize is not None and config.resize < config.image_size:
        words = (
            f"{config.resize} is smaller than image_size {config.image_size}, so that no crop fits"
        )
        found.append(Problem(f"{words}; give at least image_size, or null", "resize"))
    if config.crop == "random" and (config.resize is None or config.train_resize == "none"):
        words = (
            "'random' does not fit into images smaller than image_size; give resize, and "
            "train_resize 'short_side' or 'square', or crop: random_resized"
        )
        found.append(Problem(words, "crop"))
    if config.native_size and config.augmentation == "none":
        words = (
            "shows images of many sizes, which no training batch can hold; give augmentation: "
            "crop_flip, or native_size: false"
        )
        found.append(Problem(words, "native_size"))
    if config.max_side is not None and not config.native_size:
        words = f"{config.max_side} has no meaning without native_size: true; give null"
        found.append(Problem(words, "max_side"))
    for key, values in (("mean", config.mean), ("std", config.std)):
        if len(values) != 1 and len(values) < channels:
            words = (
                f"has {len(values)} values for {channels} channels; give one, or one per channel"
            )
            found.append(Problem(words, key))
    if not all(1 / MOST_SCALE <= value <= MOST_SCALE for value in config.std):
        words = f"{config.std} divides the pixels; give values from {1 / MOST_SCALE:g}"
        found.append(Problem(f"{words} to {MOST_SCALE:g}", "std"))
    if not all(abs(value) <= MOST_SCALE for value in config.mean):
        words = f"{config.mean} is subtracted from pixels in [0, 1]; give values of at most"
        found.append(Problem(f"{words} {MOST_SCALE:g}", "mean"))
    for key, values, highest in (
        ("crop_area", config.crop_area, 1.0),
        ("crop_aspect", config.crop_aspect, MOST_RATIO),
        ("scale", config.scale, MOST_RATIO),
    ):
        if len(values) != 2 or not 1 / MOST_RATIO**2 <= values[0] <= values[1] <= highest:
            words = f"{values} is no range; give two increasing numbers from {1 / MOST_RATIO**2:g}"
            words = f"{words} to {highest:g}"
            found.append(Problem(words, key))
    return found
