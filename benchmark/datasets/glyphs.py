"""The embedded glyph datasets: retrieve unseen characters across fonts.

=========== =====================================================================================
name        classes (half to train, the other half unseen, for testing)
=========== =====================================================================================
glyphs      every character with at least two different images
glyphs_1k   1,000 random characters of those with at least four images: enough for a batch
glyphs_tiny 64 characters of the same kind, for smoke tests
=========== =====================================================================================

Which classes are drawn, and which half they fall in, follows from a fixed seed and never changes.
"""

import unicodedata
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.core.seeding import derive
from benchmark.datasets import DATASETS
from benchmark.datasets.base import (
    Dataset,
    DatasetLoader,
    ImageSet,
    Protocol,
    fingerprint_of,
    pixel_set,
)
from benchmark.datasets.counts import Counts
from benchmark.datasets.glyph_drawing import glyph_images

SPLIT_SEED = 0


class GlyphLoader(DatasetLoader):
    """Draws or reads the glyphs and splits their classes."""

    name: ClassVar[str]
    classes: ClassVar[int | None]  # None takes all
    min_images: ClassVar[int]
    images: ClassVar[int]  # to train on

    @dataclass(frozen=True, kw_only=True)
    class Config:
        """No options: the datasets are fixed."""

    def expected_counts(self) -> Counts:
        """Return the number of training images, which never changes."""
        return {"train": {"images": self.images}}

    def load(self) -> Dataset:
        """Return the dataset."""
        drawn = glyph_images()
        train, test = (_subset(drawn, codes) for codes in self._split(drawn["codes"]))
        arrays = (train.pixels, train.labels, test.pixels, test.labels)
        fingerprint = fingerprint_of(*(array for array in arrays if array is not None))
        return Dataset(self.name, train, {"test": Protocol(test)}, fingerprint)

    def _split(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        unique, counts = np.unique(codes, return_counts=True)
        eligible = unique[counts >= self.min_images]
        order = np.random.default_rng(derive(SPLIT_SEED, "glyph classes")).permutation(eligible)
        chosen = order[: self.classes]
        half = len(chosen) // 2
        return np.sort(chosen[:half]), np.sort(chosen[half:])


def _subset(drawn: dict[str, np.ndarray], codes: np.ndarray) -> ImageSet:
    rows = np.flatnonzero(np.isin(drawn["codes"], codes))
    labels = np.searchsorted(codes, drawn["codes"][rows])
    words = [unicodedata.name(chr(code)).split()[0].split("-")[0] for code in codes]
    categories = np.unique(words, return_inverse=True)[1][labels].astype(np.int64)
    names = [
        f"U+{code:04X} {unicodedata.name(chr(code))}, {drawn['font_names'][font]}"
        for code, font in zip(drawn["codes"][rows], drawn["fonts"][rows], strict=True)
    ]
    return pixel_set(drawn["pixels"][rows][..., None], labels, names, categories)


@DATASETS.register("glyphs", display="Glyphs")
class Glyphs(GlyphLoader):
    """All characters."""

    name, classes, min_images, images = "glyphs", None, 2, 17_406


@DATASETS.register("glyphs_1k", display="Glyphs-1k")
class Glyphs1k(GlyphLoader):
    """1,000 characters."""

    name, classes, min_images, images = "glyphs_1k", 1000, 4, 5_347


@DATASETS.register("glyphs_tiny", display="Glyphs-tiny")
class GlyphsTiny(GlyphLoader):
    """64 characters."""

    name, classes, min_images, images = "glyphs_tiny", 64, 4, 346
