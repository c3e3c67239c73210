"""Tests only: glyphs_tiny with its categories renumbered, so that the last one is large.

The sampler ``category_and_rest`` takes the last category for the classes without one, as VehicleID
numbers them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmark.datasets import DATASETS
from benchmark.datasets.base import Dataset
from benchmark.datasets.glyphs import GlyphsTiny


@DATASETS.register("glyphs_with_rest", display="Glyphs with a rest")
class GlyphsWithRest(GlyphsTiny):
    """64 characters; the training categories are numbered by their images."""

    name = "glyphs_with_rest"

    def load(self) -> Dataset:
        """Returns the dataset."""
        found = super().load()
        ranks = np.argsort(np.argsort(np.bincount(found.train.categories), kind="stable"))
        return replace(found, train=replace(found.train, categories=ranks[found.train.categories]))
