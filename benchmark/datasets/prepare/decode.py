"""Decodes every image of a dataset and names the broken ones."""

from collections.abc import Callable
from dataclasses import dataclass

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
    decoder = _Decoder([image_set.opener for image_set in sets])
    with Meter("decoding", len(images), "images") as meter:
        errors = []
        for error in ordered_map(decoder, list(images.values()), workers):
            meter.add(1)
            errors += [] if error is None else [error]
    return errors, len(images)


@dataclass(frozen=True)
class _Decoder:
    """Opens one image of one set; returns its error, or None."""

    openers: list[Callable[[int], Image.Image]]

    def __call__(self, image: tuple[int, int]) -> str | None:
        number, index = image
        try:
            self.openers[number](index)
        except DataError as error:
            return str(error)
        return None
