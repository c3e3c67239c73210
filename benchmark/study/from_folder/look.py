"""What the settings of a folder study depend on: what the directory holds, and the network."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmark.datasets import load_dataset
from benchmark.datasets.base import Dataset, ImageSet

SAMPLED = 64  # images that are opened
# A picture counts as grey when no pixel's channels are farther apart: JPEG leaves some colour.
GREY_SPREAD = 12


@dataclass(frozen=True)
class Look:
    """A dataset of class folders in numbers.

    per_class   int64 (classes,): images of each training class
    side        median of the shorter sides of the images looked at, pixels
    seconds     mean time to read and decode one of them
    """

    counts: Mapping[str, Mapping[str, int]]
    per_class: np.ndarray
    grey: bool
    side: int
    seconds: float
    sampled: int

    @property
    def images(self) -> int:
        """Return the number of training images."""
        return int(self.per_class.sum())


def look(params: Mapping[str, Any]) -> Look:
    """Return what the dataset 'folder' holds; raise DataError with all that is wrong."""
    dataset = load_dataset("folder", params)
    per_class = np.unique(dataset.train.labels, return_counts=True)[1]
    sides, grey, seconds = _sampled(dataset)
    return Look(dataset.counts, per_class, grey, int(np.median(sides)), seconds, len(sides))


def _sampled(dataset: Dataset) -> tuple[list[int], bool, float]:
    """Return shorter sides of images of both splits, whether all are grey, seconds for each."""
    sides, grey = [], True
    started = time.perf_counter()
    for images in (dataset.train, dataset.protocols["test"].query):
        for number in _spread(images):
            picture = images.image(number)
            sides.append(min(picture.size))
            if grey and picture.mode != "L":
                small = np.asarray(picture.resize((64, 64))).astype(np.int16)
                grey = bool(np.ptp(small, axis=2).max() <= GREY_SPREAD)
    return sides, grey, (time.perf_counter() - started) / len(sides)


def _spread(images: ImageSet) -> list[int]:
    """Return numbers of images at even distances."""
    numbers = np.linspace(0, len(images) - 1, SAMPLED // 2)
    return sorted({int(number) for number in numbers})


@dataclass(frozen=True)
class Network:
    """A backbone and its weights.

    label         name in paths and tables
    weights       where they come from, in words; None for a network trained from scratch
    mean, std     of the pixels that the weights were trained on, per channel
    fixed_side    side of the input that the network demands, pixels; None when it takes any
    """

    backbone: str
    label: str
    weights: str | None = None
    checkpoint: str | None = None
    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)
    fixed_side: int | None = None

    @property
    def pretrained(self) -> bool:
        """Return whether it starts from weights."""
        return self.weights is not None


# The network of the embedded study: 0.4 million parameters, learns on a CPU.
FROM_SCRATCH = Network("test_resnet", "test_resnet")
