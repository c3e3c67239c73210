"""What every dataset looks like to the rest of the suite."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from PIL import Image

ALL_METRICS = ("recall_at_k", "map_at_r", "map")  # families of benchmark.metrics.names


@dataclass(frozen=True)
class ImageSet:
    """Images with labels, in a fixed order.

    labels      int64 (N,): class of each image
    names       path or description of each image
    opener      image number -> PIL image
    categories  int64 (N,): coarser grouping of the classes, or None
    pixels      uint8 (N, H, W, C) when the whole set lies in memory, else None
    """

    labels: np.ndarray
    names: Sequence[str]
    opener: Callable[[int], Image.Image]
    categories: np.ndarray | None = None
    pixels: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def image(self, index: int) -> Image.Image:
        """Returns one image, upright, in L or RGB mode."""
        return self.opener(index)

    def counts(self) -> dict[str, int]:
        """Returns the numbers of images, classes and (when there are any) categories."""
        found = {"images": len(self), "classes": len(np.unique(self.labels))}
        if self.categories is not None:
            found["categories"] = len(np.unique(self.categories))
        return found


@dataclass(frozen=True)
class Judgements:
    """What each query is to find, where class labels do not say it (landmarks).

    relevant   per query: int64 (P_i,), places in the gallery that count as found
    ignored    per query: int64 (I_i,), places in the gallery taken out of the ranking before it is scored
    """

    relevant: tuple[np.ndarray, ...]
    ignored: tuple[np.ndarray, ...]

    def __post_init__(self) -> None:
        if len(self.relevant) != len(self.ignored):
            raise ValueError(
                f"{len(self.relevant)} relevant and {len(self.ignored)} ignored lists; one each per query"
            )


@dataclass(frozen=True)
class Protocol:
    """One evaluation: queries against a gallery; without a gallery each image queries all the others.

    judgements  what each query is to find in the gallery; labels are then not used
    repeats     pairs of places in ``query``, int64 each: (those that query, those that are the gallery). Without
                a gallery the images are then divided in each of these ways, and measures are means over them.
    """

    query: ImageSet
    gallery: ImageSet | None = None
    judgements: Judgements | None = None
    repeats: tuple[tuple[np.ndarray, np.ndarray], ...] = ()


@dataclass(frozen=True)
class Archive:
    """A file that a dataset is distributed in.

    file     its usual name; a file that is no archive is kept as the one path that it proves
    proves   paths below the dataset's root that are there once it is unpacked; folders of images end in "/"
    md5      digest of the file (hex) where its publishers give one
    flat     whether its images lie in folders, and in none once they are unpacked

    An archive that proves one folder and does not hold that folder holds what belongs into it.
    """

    file: str
    proves: tuple[str, ...]
    md5: str | None = None
    flat: bool = False


@dataclass(frozen=True)
class Dataset:
    """A loaded dataset: training images and evaluation protocols of classes that training never saw."""

    name: str
    train: ImageSet
    protocols: dict[str, Protocol]
    fingerprint: str
    metrics: tuple[str, ...] = ALL_METRICS
    counts: dict[str, dict[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.counts:
            found = {"train": self.train.counts()}
            for name, protocol in self.protocols.items():
                found[name] = protocol.query.counts()
                if protocol.gallery is not None:
                    found[f"{name} gallery"] = protocol.gallery.counts()
            object.__setattr__(self, "counts", found)


class DatasetLoader(ABC):
    """Base of the registered classes: built from its Config, ``load`` does the work."""

    Config: ClassVar[type]
    metrics: ClassVar[tuple[str, ...]] = ALL_METRICS
    archives: ClassVar[tuple[Archive, ...]] = ()  # what it is unpacked from
    expected: ClassVar[
        dict[str, dict[str, int]]
    ] = {}  # published counts: a part of Dataset.counts each
    trains: ClassVar[bool] = (
        True  # whether there are images to train on; without them it is for evaluation only
    )

    def __init__(self, config: Any):
        self.config = config

    @abstractmethod
    def load(self) -> Dataset:
        """Returns the dataset; raises DataError naming every file or class that is not right."""

    def expected_counts(self) -> dict[str, dict[str, int]]:
        """Returns the published counts of the dataset as it is configured."""
        return self.expected


class PixelOpener:
    """Makes a picture of image number i; a class, not a closure, so that other processes can receive it."""

    def __init__(self, pixels: np.ndarray):
        self.pixels = pixels

    def __call__(self, index: int) -> Image.Image:
        picture = self.pixels[index]
        return Image.fromarray(picture[..., 0] if picture.shape[-1] == 1 else picture)


def pixel_set(
    pixels: np.ndarray,
    labels: np.ndarray,
    names: Sequence[str],
    categories: np.ndarray | None = None,
) -> ImageSet:
    """Returns an in-memory set of uint8 pixels (N, H, W, C), C = 1 or 3."""
    return ImageSet(labels.astype(np.int64), names, PixelOpener(pixels), categories, pixels)


def fingerprint_of(*parts: bytes | np.ndarray | str) -> str:
    """Returns a digest (16 hex digits) of the given contents, in order."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(
            np.ascontiguousarray(content).tobytes() if isinstance(content, np.ndarray) else content
        )
        digest.update(b"\0")
    return digest.hexdigest()[:16]
