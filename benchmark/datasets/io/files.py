"""Image files: opened when needed, upright, listed when absent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import ExifTags, Image, ImageOps
from PIL.JpegImagePlugin import JpegImageFile

from benchmark.core.errors import DataError

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff"})
LISTED = 20
UPRIGHT = 1  # EXIF orientation
SIDEWAYS = (5, 6, 7, 8)  # those in which width and height change places

Divisor = Callable[[tuple[int, int]], int]  # (width, height) of an upright image -> 1, 2, 4 or 8


class Opener:
    """Opens image number i; a class, not a closure, so that worker processes can receive it."""

    def __init__(self, root: Path, paths: Sequence[str]):
        self.root, self.paths = root, paths

    def __call__(self, index: int) -> Image.Image:
        return open_image(self.root / self.paths[index])


class ReducingOpener(Opener):
    """An opener of whole images that can also decode them at a part of their size."""

    def reduced(self, index: int, divisor: Divisor) -> Image.Image:
        """Returns image number i as ``open_image`` does."""
        return open_image(self.root / self.paths[index], divisor=divisor)


def open_image(
    source: Path | BinaryIO, name: str | None = None, divisor: Divisor | None = None
) -> Image.Image:
    """Returns the picture in a file, turned upright by its EXIF tag, in L or RGB.

    Alpha goes on white; grey of 16 bits is scaled to 8. ``divisor`` is told the size of the picture and says by
    which number its sides may be divided, rounded up; an upright JPEG is decoded at that size, all else stays whole.
    Raises DataError, which calls the file ``name``, when it cannot be decoded.
    """
    try:
        with Image.open(source) as picture:
            if divisor is not None:
                _reduce(picture, divisor)
            ImageOps.exif_transpose(picture, in_place=True)
            if picture.mode == "L" or (picture.mode == "RGB" and not picture.has_transparency_data):
                return picture
            if picture.mode == "F" or picture.mode.startswith("I"):
                return _eight_bits(picture)
            if picture.has_transparency_data:
                picture = picture.convert("RGBA")
                ground = Image.new("RGBA", picture.size, "white")
                picture = Image.alpha_composite(ground, picture)
            return picture.convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        place = name or source
        raise DataError(
            f"cannot decode {place}: {error}; replace the file or take it out of the dataset"
        ) from error


def _reduce(picture: Image.Image, divisor: Divisor) -> None:
    """Lets a JPEG be decoded with its sides divided: fewer coefficients of each block are transformed back.

    One that has to be turned stays whole: what rounding adds to its sides would end up on the left or at the top.
    """
    width, height = picture.size
    orientation = picture.getexif().get(ExifTags.Base.Orientation, UPRIGHT)
    number = divisor((height, width) if orientation in SIDEWAYS else (width, height))
    if number > 1 and orientation == UPRIGHT and isinstance(picture, JpegImageFile):
        picture.draft(None, (width // number, height // number))


def _eight_bits(picture: Image.Image) -> Image.Image:
    """Returns 16-bit grey as L: 0..65535 becomes 0..255, where PIL's own conversion would clip at 255."""
    values = np.asarray(picture)
    if values.dtype.kind == "f" or values.min() < 0 or values.max() > 65535:
        raise ValueError(
            f"its grey values (mode {picture.mode}) do not fit 16 bits; save it with 8 or 16"
        )
    return Image.fromarray(((values.astype(np.uint32) * 255 + 32767) // 65535).astype(np.uint8))


def check_files(root: Path, paths: Sequence[str]) -> None:
    """Raises DataError listing the files that are absent or empty; pixels are not decoded."""
    bad = []
    for path in paths:
        full = root / path
        if not full.is_file():
            bad.append(f"{path} (missing)")
        elif full.stat().st_size == 0:
            bad.append(f"{path} (empty)")
    _raise(root, bad, len(paths))


def _raise(root: Path, bad: list[str], total: int) -> None:
    if bad:
        shown = "\n  ".join(bad[:LISTED])
        more = f"\n  and {len(bad) - LISTED} more" if len(bad) > LISTED else ""
        raise DataError(
            f"{len(bad)} of {total} images below {root} cannot be used:\n  {shown}{more}"
        )
