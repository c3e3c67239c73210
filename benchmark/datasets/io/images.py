"""Image files: the only place that decodes them.

Pillow tries every format that it knows, whatever the suffix says, and starts Ghostscript for
PostScript. Here it is told which formats to read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import ExifTags, Image, ImageOps, TiffImagePlugin, WebPImagePlugin  # noqa: F401 - else PIL imports all its plugins
from PIL.JpegImagePlugin import JpegImageFile

from benchmark.core.errors import BenchmarkError, DataError
from benchmark.core.paths import open_regular, path_below

FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM")  # MPO is opened as JPEG
IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff"})
UPRIGHT = 1  # EXIF orientation
SIDEWAYS = (5, 6, 7, 8)  # EXIF orientations that exchange width and height

Divisor = Callable[[tuple[int, int]], int]  # (width, height) of an upright image -> 1, 2, 4 or 8


def open_stored(source: Path | BinaryIO, name: str | None = None) -> Image.Image:
    """Return the decoded image in a file as it is stored: not turned, in its own mode.

    Raise DataError as ``open_image`` does.
    """
    with _opened(source, name) as image:
        image.load()
        return image


def open_image(
    source: Path | BinaryIO, name: str | None = None, divisor: Divisor | None = None
) -> Image.Image:
    """Return the decoded image in a file, upright by its EXIF tag, in mode L or RGB.

    Transparency becomes white; 16-bit grey is scaled to 8 bits. ``divisor`` maps the image's size
    to the number by which its sides may be divided, rounded up; only upright JPEGs are reduced.
    Raise DataError, with ``name`` or the path, for anything that cannot be decoded.
    """
    with _opened(source, name) as image:
        if divisor is not None:
            _reduce(image, divisor)
        ImageOps.exif_transpose(image, in_place=True)
        if image.mode == "L" or (image.mode == "RGB" and not image.has_transparency_data):
            return image
        if image.mode == "F" or image.mode.startswith("I"):
            return _eight_bits(image)
        if image.has_transparency_data:
            layer = image.convert("RGBA")
            return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert(
                "RGB"
            )
        return image.convert("RGB")


def image_format(source: Path | BinaryIO, name: str | None = None) -> tuple[str, bool]:
    """Return the format of an image file, and whether ``open_image`` shows it as it is stored."""
    with _opened(source, name) as image:
        as_stored = _orientation(image) == UPRIGHT and image.mode in ("L", "RGB")
        return str(image.format), as_stored


@contextlib.contextmanager
def _opened(source: Path | BinaryIO, name: str | None) -> Iterator[Image.Image]:
    """Open an image; whatever its decoder raises, also while the caller decodes, is a DataError."""
    try:
        with (
            open_regular(source) if isinstance(source, Path) else source as stream,
            Image.open(stream, formats=FORMATS) as image,
        ):
            if 0 in image.size:
                raise ValueError("it has no pixels")
            yield image
    except BenchmarkError:
        raise
    except Exception as error:  # damaged files make the decoders fail in any way
        reason = str(error) or type(error).__name__
        raise DataError(
            f"cannot decode {name or source}: {reason}; replace the file by one of "
            f"{', '.join(FORMATS)}, or take it out of the dataset"
        ) from error


def _orientation(image: Image.Image) -> int:
    return image.getexif().get(ExifTags.Base.Orientation, UPRIGHT)


def _reduce(image: Image.Image, divisor: Divisor) -> None:
    """Let a JPEG be decoded with divided sides: fewer coefficients of each block are transformed.

    A rotated one stays whole: what rounding adds to its sides would end up on the left or top.
    """
    width, height = image.size
    orientation = _orientation(image)
    number = divisor((height, width) if orientation in SIDEWAYS else (width, height))
    if number > 1 and orientation == UPRIGHT and isinstance(image, JpegImageFile):
        image.draft(None, (width // number, height // number))


def _eight_bits(image: Image.Image) -> Image.Image:
    """Return 16-bit grey as L: 0..65535 becomes 0..255, where PIL's own conversion clips at 255."""
    values = np.asarray(image)
    if values.dtype.kind == "f" or values.min() < 0 or values.max() > 65535:
        raise ValueError(
            f"its grey values (mode {image.mode}) do not fit 16 bits; save it with 8 or 16"
        )
    return Image.fromarray(((values.astype(np.uint32) * 255 + 32767) // 65535).astype(np.uint8))


class Opener:
    """Opens image number i below a root; a class, so that worker processes can receive it."""

    def __init__(self, root: Path, paths: Sequence[str]):
        self.root, self.paths = root, paths

    def __call__(self, index: int) -> Image.Image:
        return open_image(path_below(self.root, self.paths[index]))

    def stored(self, index: int) -> Image.Image:
        """Return image number i as it is stored; see ``open_stored``."""
        return open_stored(path_below(self.root, self.paths[index]))


class ReducingOpener(Opener):
    """An opener that can also decode images at a part of their size."""

    def reduced(self, index: int, divisor: Divisor) -> Image.Image:
        """Return image number i; see ``open_image`` for the divisor."""
        return open_image(path_below(self.root, self.paths[index]), divisor=divisor)
