"""Decodes every image of a dataset and says which are broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PIL import Image

from benchmark.core.errors import DataError
from benchmark.datasets.base import Dataset, ImageSet
from benchmark.datasets.prepare.meter import Meter
from benchmark.datasets.prepare.parallel import ordered_map


def image_sets(dataset: Dataset) -> list[ImageSet]:
    """Returns the image sets of a dataset: training, then each protocol's query and gallery."""
    found = [dataset.train]
    for protocol in dataset.protocols.values():
        found += [protocol.query] + ([] if protocol.gallery is None else [protocol.gallery])
    return found


def broken_images(dataset: Dataset, workers: int) -> tuple[list[str], int]:
    """Returns what is wrong with each broken image, and how many were decoded; an image of two splits counts once."""
    sets = image_sets(dataset)
    places = {}
    for number, image_set in enumerate(sets):
        for index, name in enumerate(image_set.names):
            places.setdefault(name, (number, index))
    attempt = _Attempt([image_set.opener for image_set in sets])
    items = list(places.values())
    bad = []
    with Meter("decoding", len(items), "images") as meter:
        for problem in ordered_map(attempt, items, workers):
            meter.add(1)
            if problem is not None:
                bad.append(problem)
    return bad, len(items)


@dataclass(frozen=True)
class _Attempt:
    """Opens image ``index`` of set ``number``; returns None or what is wrong with it."""

    openers: list[Callable[[int], Image.Image]]

    def __call__(self, place: tuple[int, int]) -> str | None:
        number, index = place
        try:
            self.openers[number](index)
        except DataError as error:
            return str(error)
        return None
