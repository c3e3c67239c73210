"""Hostile annotations of Cars196 in halves, and records of prepared datasets."""

from __future__ import annotations

import io

import numpy as np
from archives import car_annotations
from scipy.io import savemat

from hostile.cases import cases

PREPARED = cases(
    "prepared.json",
    {
        "sources of a list": '{"sources": []}',
        "sources of a number": '{"sources": 3}',
        "a source of null": '{"sources": {"a": null}}',
        "a source of text": '{"sources": {"a": "sha256"}}',
        "a digest of a list": '{"sources": {"a": {"sha256": [1]}}}',
        "a list": "[]",
        "nothing": "",
    },
    "cannot be read as the record of a dataset",
)


def cars(**changes: object) -> bytes:
    """Return the annotations of the training half of Cars196 with one variable replaced."""
    stream = io.BytesIO()
    images = car_annotations("fname", "{:05d}.jpg", [1, 98, 99, 196, 1, 98])
    savemat(stream, {"annotations": images} | changes)
    return stream.getvalue()


def cars_of_class(number: float) -> np.ndarray:
    """Return annotations whose first image is of a class that is a real number."""
    images = car_annotations("fname", "{:05d}.jpg", [1, 98, 99, 196, 1, 98])
    images["class"][0, 0] = np.array([[number]])
    return images


CARS = cases(
    "list cars196 halves: devkit/cars_train_annos.mat",
    {
        "nothing": b"",
        "numbers for images": cars(annotations=np.arange(3)),
        "text for images": cars(annotations=np.array([["a", "b"]], dtype=object)),
        "other images": cars(annotations=car_annotations("name", "{}.jpg", [1])),
        "a path that leaves": cars(annotations=car_annotations("fname", "../{}.jpg", [1])),
        "a class of infinity": cars(annotations=cars_of_class(float("inf"))),
        "a class of NaN": cars(annotations=cars_of_class(float("nan"))),
        "zeros behind the images": cars() + bytes(10**8),
        "a class of 10^300": cars(annotations=cars_of_class(1e300)),
    },
    "cars_train_annos.mat",
)

CASES = [*PREPARED, *CARS]
