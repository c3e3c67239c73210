"""Decodes every image of a dataset and names the broken ones."""

from collections.abc import Callable
from functools import partial

from PIL import Image

from benchmark.core.errors import DataError
from benchmark.datasets.base import Dataset
from benchmark.datasets.prepare.meter import Meter
from benchmark.datasets.prepare.parallel import ordered_map


def broken_images(dataset: Dataset, workers: int) -> tuple[list[str], int]:
    """Return the error of each broken image, and the number of images.

    An image of two splits is decoded once.
    """
    sets = dataset.image_sets()
    images: dict[str, tuple[int, int]] = {}  # name -> number of the set, index in it
    for number, image_set in enumerate(sets):
        for index, name in enumerate(image_set.names):
            images.setdefault(name, (number, index))
    decoder = partial(_error_of, [image_set.opener for image_set in sets])
    with Meter("decoding", len(images), "images") as meter:
        errors = []
        for error in ordered_map(decoder, list(images.values()), workers):
            meter.add(1)
            errors += [] if error is None else [error]
    return errors, len(images)


def _error_of(openers: list[Callable[[int], Image.Image]], image: tuple[int, int]) -> str | None:
    """Return the error of one image, given by the number of its opener and its own, or None."""
    number, index = image
    try:
        openers[number](index)
    except DataError as error:
        return str(error)
    return None
