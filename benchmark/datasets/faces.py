"""Faces: images with a box around a face, cropped to it and a margin when they are opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from benchmark.core.options import option
from benchmark.datasets.base import Dataset, ImageSet, fingerprint_of
from benchmark.datasets.index import IndexedLoader, RootConfig
from benchmark.datasets.io.findings import Findings
from benchmark.datasets.io.images import Opener
from benchmark.datasets.io.lists import read_table
from benchmark.datasets.landmarks import CroppedOpener

MARGIN = 0.3  # VGGFace2, section 4.1: boxes are extended by this share of their sides


@dataclass(frozen=True, kw_only=True)
class FaceConfig(RootConfig):
    """The options of sets of faces."""

    margin: float = option(
        MARGIN,
        at_least=0.0,
        help="share by which the sides of a face's box grow before the image is cropped to it",
    )
    aligned: bool = option(
        False,
        help="read crops that were aligned beforehand, as they are: the same paths below aligned/",
    )


class FaceLoader(IndexedLoader):
    """Loads images of faces; ``read_faces`` fills ``boxes`` in the order of the images' roles.

    boxes  role -> float64 (N, 4): left, top, width, height of the face, in pixels
    """

    Config: ClassVar[type] = FaceConfig
    box_columns: ClassVar[Sequence[str]]

    def __init__(self, config: FaceConfig):
        super().__init__(config)
        self.boxes: dict[str, np.ndarray] = {}

    def read_faces(
        self, findings: Findings, file: str, role: str, texts: Sequence[str]
    ) -> pd.DataFrame:
        """Return the texts of a table of faces, and keep its boxes."""
        rows = read_table(findings, file, texts, self.box_columns)
        self.keep_boxes(role, rows)
        return rows[list(texts)]

    @property
    def above(self) -> str:
        """The folder that the paths of images are below."""
        return "aligned/" if self.config.aligned else ""

    def keep_boxes(self, role: str, rows: pd.DataFrame) -> None:
        """Keep the boxes of the rows that make up a role."""
        self.boxes[role] = rows[list(self.box_columns)].to_numpy(dtype=np.float64)

    def load(self) -> Dataset:
        """Return the dataset, cropped to the faces; raise DataError with everything wrong."""
        dataset = super().load()
        boxes = np.concatenate([self.boxes[role] for role in sorted(self.boxes)])
        return replace(
            dataset,
            train=self._cropped(dataset.train, "train"),
            protocols={
                name: replace(protocol, query=self._cropped(protocol.query, "test"))
                for name, protocol in dataset.protocols.items()
            },
            fingerprint=fingerprint_of(dataset.fingerprint, boxes, repr(self.config.margin)),
        )

    def _cropped(self, images: ImageSet, role: str) -> ImageSet:
        root, paths = Path(self.config.root), list(images.names)
        if self.config.aligned or not paths:
            return replace(images, opener=Opener(root, paths))
        boxes = extended(self.boxes[role], self.config.margin)
        return replace(images, opener=CroppedOpener(root, paths, boxes))


def extended(boxes: np.ndarray, margin: float) -> np.ndarray:
    """Return left, top, right, bottom (N, 4) of boxes whose sides grew by a share ``margin``."""
    corner, size = boxes[:, :2], boxes[:, 2:]
    grown = size * margin / 2
    return np.concatenate([corner - grown, corner + size + grown], axis=1)


def numbered(texts: Sequence[str]) -> np.ndarray:
    """Return the number of each text, int64 (N,), in the order in which they first come."""
    return pd.factorize(np.asarray(texts, dtype=object))[0].astype(np.int64)
