"""The embedded glyph datasets: retrieve unseen characters across the fonts of matplotlib.

``glyphs`` takes every character with at least two different images, ``glyphs_1k`` 1,000 random ones
of those with at least four (enough for a batch), ``glyphs_tiny`` 64 of the same, for smoke tests.
Half of the classes train, the other half is unseen, for testing.

A class is a character, an image is that character in one font, a category is the first word of the
character's Unicode name (LATIN, GREEK, BRAILLE ...). Characters are letters, numbers, symbols and
punctuation that at least ``MIN_FONTS`` of the fonts have. Equal images of one class count once.
Different characters may look alike (Latin A, Greek Alpha): such classes stay, so that no method can
reach 100 percent. Which classes are drawn, and which half they fall in, follows from a fixed seed
and never changes.
"""

import importlib.util
import unicodedata
from collections import Counter
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from PIL import Image

from benchmark.core.environment import cache_folder
from benchmark.core.files import replacing
from benchmark.core.options import options
from benchmark.core.seeding import derive
from benchmark.datasets import DATASETS
from benchmark.datasets.base import Dataset, DatasetLoader, ImageSet, Protocol, fingerprint_of

DRAWING_VERSION = 1  # raise when the pixels change
SIDE = 32  # pixels
POINTS = 24
LARGEST = 30  # pixels that a character may take of SIDE
MIN_FONTS = 6
# placeholders, and fragments of large symbols
SKIPPED_FONTS = ("LastResort", "STIXSiz", "STIXNonUni")


class GlyphLoader(DatasetLoader):
    """Draws or reads the glyphs and splits their classes."""

    name: ClassVar[str]
    classes: ClassVar[int | None]  # None takes all
    min_images: ClassVar[int]

    @options
    class Config:
        """No options: the datasets are fixed."""

    def load(self) -> Dataset:
        """Return the dataset."""
        drawn = glyph_images()
        unique, counts = np.unique(drawn["codes"], return_counts=True)
        eligible = unique[counts >= self.min_images]
        order = np.random.default_rng(derive(0, "glyph classes")).permutation(eligible)
        chosen = order[: self.classes]
        halves = np.split(chosen, [len(chosen) // 2])
        train, test = (_subset(drawn, np.sort(codes)) for codes in halves)
        arrays = (train.pixels, train.labels, test.pixels, test.labels)
        fingerprint = fingerprint_of(*map(np.asarray, arrays))
        return Dataset(self.name, train, {"test": Protocol(test)}, fingerprint)


def _subset(drawn: dict[str, np.ndarray], codes: np.ndarray) -> ImageSet:
    rows = np.flatnonzero(np.isin(drawn["codes"], codes))
    labels = np.searchsorted(codes, drawn["codes"][rows])
    scripts = [unicodedata.name(chr(code)).split()[0].split("-")[0] for code in codes]
    categories = np.unique(scripts, return_inverse=True)[1][labels].astype(np.int64)
    names = [
        f"U+{code:04X} {unicodedata.name(chr(code))}, {drawn['font_names'][font]}"
        for code, font in zip(drawn["codes"][rows], drawn["fonts"][rows], strict=True)
    ]
    pixels = drawn["pixels"][rows][..., None]
    return ImageSet(labels.astype(np.int64), names, categories=categories, pixels=pixels)


@DATASETS.register("glyphs", display="Glyphs")
class Glyphs(GlyphLoader):
    """All characters."""

    name = "glyphs"
    classes = None
    min_images = 2
    expected: ClassVar = {"train": {"images": 17_406}}


@DATASETS.register("glyphs_1k", display="Glyphs-1k")
class Glyphs1k(GlyphLoader):
    """1,000 characters."""

    name = "glyphs_1k"
    classes = 1000
    min_images = 4
    expected: ClassVar = {"train": {"images": 5_347}}


@DATASETS.register("glyphs_tiny", display="Glyphs-tiny")
class GlyphsTiny(GlyphLoader):
    """64 characters."""

    name = "glyphs_tiny"
    classes = 64
    min_images = 4
    expected: ClassVar = {"train": {"images": 346}}


def glyph_images() -> dict[str, np.ndarray]:
    """Return ``pixels`` uint8 (N, 32, 32), ``codes`` and ``fonts`` int64 (N,), and ``font_names``.

    They are drawn once and cached, and again when matplotlib, its fonts or the Unicode tables
    change.
    """
    fonts = "\n".join(f"{path.name} {path.stat().st_size}" for path in _font_files())
    key = fingerprint_of(
        str(DRAWING_VERSION), metadata.version("matplotlib"), unicodedata.unidata_version, fonts
    )
    path = cache_folder() / f"glyphs-{key}.npz"
    if path.exists():
        with np.load(path) as arrays:
            return dict(arrays)
    drawn = _draw()
    with replacing(path) as temporary, open(temporary, "wb") as stream:
        np.savez(stream, **drawn)  # type: ignore[arg-type] # 36 MB instead of 4, read in a quarter of the time
    return drawn


def _font_files() -> list[Path]:
    """Return the fonts to draw with, sorted, without the cost of importing matplotlib."""
    package = importlib.util.find_spec("matplotlib")
    folder = Path(str(package and package.origin)).parent / "mpl-data" / "fonts" / "ttf"
    return sorted(path for path in folder.glob("*.ttf") if not path.name.startswith(SKIPPED_FONTS))


def _draw() -> dict[str, np.ndarray]:
    from matplotlib.ft2font import FT2Font

    files = _font_files()
    fonts = [FT2Font(str(path)) for path in files]
    for font in fonts:
        font.set_size(POINTS, 72)
    charmaps = [font.get_charmap() for font in fonts]
    counts = Counter(code for charmap in charmaps for code in charmap)
    characters = (
        code
        for code, count in sorted(counts.items())
        if count >= MIN_FONTS
        and unicodedata.category(chr(code))[0] in "LNSP"
        and unicodedata.name(chr(code), None) is not None
    )
    drawn: list[tuple[np.ndarray, int, int]] = []
    for code in characters:
        seen = set()
        for number, (font, charmap) in enumerate(zip(fonts, charmaps, strict=True)):
            picture = _picture(font, code) if code in charmap else None
            if picture is not None and picture.tobytes() not in seen:
                seen.add(picture.tobytes())
                drawn.append((picture, code, number))
    pixels, codes, numbers = zip(*drawn, strict=True)
    return {
        "pixels": np.stack(pixels),
        "codes": np.array(codes, dtype=np.int64),
        "fonts": np.array(numbers, dtype=np.int64),
        "font_names": np.array([path.stem for path in files]),
    }


def _picture(font: Any, code: int) -> np.ndarray | None:
    """Return a character centred in SIDE x SIDE pixels, or None when the font leaves it blank."""
    font.set_text(chr(code), 0.0)
    font.draw_glyphs_to_bitmap(antialiased=True)
    bitmap = np.array(font.get_image())
    rows, columns = np.nonzero(bitmap)
    if not len(rows):
        return None
    bitmap = bitmap[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    largest = max(bitmap.shape)
    if largest > LARGEST:
        size = tuple(max(1, round(side * LARGEST / largest)) for side in bitmap.shape[::-1])
        bitmap = np.asarray(Image.fromarray(bitmap).resize(size, Image.Resampling.BOX))
    canvas = np.zeros((SIDE, SIDE), dtype=np.uint8)
    top, left = ((SIDE - side) // 2 for side in bitmap.shape)
    canvas[top : top + bitmap.shape[0], left : left + bitmap.shape[1]] = bitmap
    return canvas
