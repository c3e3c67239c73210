"""Faces: images with a box around a face, cropped to it and a margin when they are opened."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from benchmark.core.options import option
from benchmark.datasets.base import fingerprint_of
from benchmark.datasets.index import IndexedLoader, RootConfig
from benchmark.datasets.io.images import Opener
from benchmark.datasets.landmarks import CroppedOpener

MARGIN = 0.3  # VGGFace2, section 4.1: boxes are extended by this share of their sides


@dataclass(frozen=True, kw_only=True)
class FaceConfig(RootConfig):
    """The options of sets of faces."""

    margin: float = option(
        MARGIN,
        at_least=0.0,
        at_most=100.0,
        help="share by which the sides of a face's box grow before the image is cropped to it",
    )
    aligned: bool = option(
        False,
        help="read crops that were aligned beforehand, as they are: the same paths below aligned/",
    )


class FaceLoader(IndexedLoader):
    """Loads images of faces, whose table has the left, top, width and height of each, in pixels."""

    Config: ClassVar[type] = FaceConfig

    @property
    def above(self) -> str:
        """The folder that the paths of images are below."""
        return "aligned/" if self.config.aligned else ""

    def opener(self, rows: pd.DataFrame) -> Opener:
        """Return the opener of the images, cropped to the faces unless they are aligned."""
        root, paths = Path(self.config.root), rows["path"].tolist()
        if self.config.aligned:
            return Opener(root, paths)
        return CroppedOpener(root, paths, extended(self._boxes(rows), self.config.margin))

    def fingerprint(self, table: pd.DataFrame) -> str:
        """Return the digest of the index table, the boxes and their margin."""
        boxes = self._boxes(table.sort_values("role", kind="stable"))
        return fingerprint_of(super().fingerprint(table), boxes, repr(self.config.margin))

    def _boxes(self, rows: pd.DataFrame) -> np.ndarray:
        """Return the boxes of the faces, float64 (N, 4)."""
        return rows[list(self.further)].to_numpy(dtype=np.float64)


def extended(boxes: np.ndarray, margin: float) -> np.ndarray:
    """Return left, top, right, bottom (N, 4) of boxes whose sides grew by a share ``margin``."""
    corner, size = boxes[:, :2], boxes[:, 2:]
    grown = size * margin / 2
    return np.concatenate([corner - grown, corner + size + grown], axis=1)
