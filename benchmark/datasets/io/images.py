"""Image files: the only place that decodes them.

Pillow tries every format that it knows, whatever the suffix says, and starts Ghostscript for
PostScript. Here it is given the formats to read; its own limit refuses images of too many pixels.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import ExifTags, Image, ImageOps, TiffImagePlugin, UnidentifiedImageError, WebPImagePlugin  # noqa: F401 - else PIL imports all its plugins
from PIL.JpegImagePlugin import JpegImageFile

from benchmark.core.errors import DataError

# Pillow's words on damage name no file; a filter once, because to change filters brings back the
# warnings that were shown already.
warnings.filterwarnings("ignore", module=r"PIL\.")

FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM")  # MPO is opened as JPEG
IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff"})
UPRIGHT = 1  # EXIF orientation
SIDEWAYS = (5, 6, 7, 8)  # EXIF orientations that exchange width and height

Divisor = Callable[[tuple[int, int]], int]  # (width, height) of an upright image -> 1, 2, 4 or 8
Picture = Image.Image | np.ndarray  # as Pillow has it, or uint8 (height, width, 3) in RGB


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
        return _upright(image)


def open_pixels(path: Path, divisor: Divisor | None = None, *, stored: bool = False) -> Picture:
    """Return what ``open_image`` does; with ``stored``, not turned and in the stored mode.

    A JPEG that is shown whole comes as its pixels: libjpeg-turbo decodes it to the same bits in two
    thirds of the time, without Pillow's copies. Raise DataError as ``open_image`` does.
    """
    with _opened(path, None) as image:
        reduced = divisor is not None and _reduce(image, divisor)
        if not reduced and (stored or _orientation(image) == UPRIGHT):
            pixels = _jpeg_pixels(image)
            if pixels is not None:
                return pixels
        if stored:
            image.load()
            return image.convert("RGB") if image.mode == "LAB" else image  # Pillow has no LAB to L
        return _upright(image)


def _jpeg_pixels(image: Image.Image) -> np.ndarray | None:
    """Return the pixels of a whole JPEG in RGB; None for what Pillow has to look at."""
    if not isinstance(image, JpegImageFile) or image.mode != "RGB" or image.fp is None:
        return None
    import simplejpeg  # what opens no such files does without

    image.fp.seek(0)
    data = image.fp.read()
    try:
        # A second frame may have another size than the one that Pillow has compared with its limit.
        if simplejpeg.decode_jpeg_header(data)[:2] == image.size[::-1]:
            return simplejpeg.decode_jpeg(data)
    except ValueError:  # damaged: Pillow reads some of these, and says what is wrong with others
        pass
    return None


def _upright(image: Image.Image) -> Image.Image:
    """Return an image turned by its EXIF tag, in mode L or RGB."""
    ImageOps.exif_transpose(image, in_place=True)
    if image.mode == "L" or (image.mode == "RGB" and not image.has_transparency_data):
        return image
    if image.mode == "F" or image.mode.startswith("I"):
        return _eight_bits(image)
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        white = Image.new("RGBA", layer.size, "white")
        return Image.alpha_composite(white, layer).convert("RGB")
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
        with Image.open(source, formats=FORMATS) as image:
            yield image
    except Exception as error:  # damaged files make the decoders fail in any way
        unknown = isinstance(error, UnidentifiedImageError)  # whose words name an object in memory
        reason = "not an image of a known format" if unknown else str(error) or type(error).__name__
        raise DataError(
            f"cannot decode {name or source}: {reason}; replace the file by one of "
            f"{', '.join(FORMATS)}, or take it out of the dataset"
        ) from error


def _orientation(image: Image.Image) -> int:
    return image.getexif().get(ExifTags.Base.Orientation, UPRIGHT)


def _reduce(image: Image.Image, divisor: Divisor) -> bool:
    """Let a JPEG be decoded with divided sides, from fewer coefficients; return whether it is.

    A rotated one stays whole: what rounding adds to its sides would end up on the left or top.
    """
    width, height = image.size
    orientation = _orientation(image)
    number = divisor((height, width) if orientation in SIDEWAYS else (width, height))
    if number == 1 or orientation != UPRIGHT or not isinstance(image, JpegImageFile):
        return False
    image.draft(None, (width // number, height // number))
    return True


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
        return open_image(self.root / self.paths[index])

    def stored(self, index: int) -> Picture:
        """Return image number i as it is stored; see ``open_pixels``."""
        return open_pixels(self.root / self.paths[index], stored=True)


class ReducingOpener(Opener):
    """An opener that can also decode images at a part of their size."""

    def reduced(self, index: int, divisor: Divisor) -> Picture:
        """Return image number i; see ``open_pixels``."""
        return open_pixels(self.root / self.paths[index], divisor)
