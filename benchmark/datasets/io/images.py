"""Image files: the only place that decodes them.

Pillow tries every format that it knows, whatever the suffix says, and starts Ghostscript for
PostScript. Here Pillow may read the formats of ``FORMATS`` alone. Pillow's limit refuses images of
too many pixels.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import ExifTags, Image, ImageOps, TiffImagePlugin, UnidentifiedImageError, WebPImagePlugin  # noqa: F401 - else PIL imports all its plugins
from PIL.JpegImagePlugin import JpegImageFile

from benchmark.core.errors import DataError
from benchmark.core.files import check_regular

# Pillow's warnings of damage name no file. They are filtered once for all, because each change of
# the filters shows again what was shown before.
warnings.filterwarnings("ignore", module=r"PIL\.")

FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM")  # MPO is opened as JPEG
IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff"})
IGNORED = frozenset({"thumbs.db", "desktop.ini"})
UPRIGHT = 1  # EXIF orientation
DIM = 64  # of 255: what 14 of 16 bits reach
DIM_WORDS = (
    "pictures of 16 bits hold numbers of 14 bits or fewer and are read as nearly black; multiply "
    "those of 12 bits by 16 if they should not be"
)
SIDEWAYS = (5, 6, 7, 8)  # EXIF orientations that exchange width and height

Divisor = Callable[[tuple[int, int]], int]  # (width, height) of an upright image -> 1, 2, 4 or 8
Picture = Image.Image | np.ndarray  # as Pillow has it, or uint8 (height, width, 3) in RGB


def is_ignored(name: str) -> bool:
    """Return whether a file is of a kind that systems leave beside images."""
    return name.startswith(".") or name.lower() in IGNORED


@contextlib.contextmanager
def opened(source: Path | BinaryIO, name: str | None = None) -> Iterator[Image.Image]:
    """Open an image; an error of its decoder, also while the caller decodes, is a DataError."""
    try:
        if isinstance(source, Path):
            check_regular(source)
        with Image.open(source, formats=FORMATS) as image:
            yield image
    except Exception as error:  # damaged files make the decoders fail in any way
        unknown = isinstance(error, UnidentifiedImageError)  # whose words name an object in memory
        reason = "not an image of a known format" if unknown else str(error) or type(error).__name__
        raise DataError(
            f"cannot decode {name or source}: {reason}; replace the file by one of "
            f"{', '.join(FORMATS)}, or take it out of the dataset"
        ) from error


def orientation(image: Image.Image) -> int:
    """Return the EXIF orientation of an opened image."""
    return image.getexif().get(ExifTags.Base.Orientation, UPRIGHT)


def open_image(
    source: Path | BinaryIO, name: str | None = None, divisor: Divisor | None = None
) -> Image.Image:
    """Return what ``open_pixels`` does, as an image of Pillow."""
    picture = open_pixels(source, name, divisor)
    return Image.fromarray(picture) if isinstance(picture, np.ndarray) else picture


def open_pixels(
    source: Path | BinaryIO,
    name: str | None = None,
    divisor: Divisor | None = None,
    *,
    stored: bool = False,
) -> Picture:
    """Return the decoded image in a file, upright by its EXIF tag, in mode L or RGB.

    Transparency becomes white. 16-bit grey is scaled to 8 bits. With ``stored`` the image is not
    turned and keeps its mode.

    ``divisor`` maps the size of the image to the number by which its sides may be divided, rounded
    up. Only upright JPEGs are divided: in a turned image, what rounding adds to the sides would be
    on the left or at the top.

    A whole JPEG is returned as its pixels: libjpeg-turbo decodes it to the same bits in two thirds
    of the time, without Pillow's copies. Raise DataError with ``name``, or else the path, for
    anything that cannot be decoded.
    """
    with opened(source, name) as image:
        turn = UPRIGHT if stored else orientation(image)
        reducible = isinstance(image, JpegImageFile) and turn == UPRIGHT
        if divisor is not None:
            width, height = image.size
            shown_size = (height, width) if turn in SIDEWAYS else (width, height)
            number = divisor(shown_size)
            if reducible and number > 1:
                image.draft(None, (width // number, height // number))
                reducible = False
        if reducible and image.mode == "RGB" and image.fp is not None:  # type: ignore[attr-defined]
            import simplejpeg  # what opens no such files does without

            image.fp.seek(0)  # type: ignore[attr-defined]
            data = image.fp.read()  # type: ignore[attr-defined]
            # damaged: Pillow reads some of these, and says what is wrong with others
            with contextlib.suppress(ValueError):
                # a second frame may have another size than the one that Pillow has compared with
                # its limit
                if simplejpeg.decode_jpeg_header(data)[:2] == image.size[::-1]:
                    return simplejpeg.decode_jpeg(data)
        if not stored:
            return upright(image)
        image.load()
        return image.convert("RGB") if image.mode == "LAB" else image  # Pillow has no LAB to L


def upright(image: Image.Image) -> Image.Image:
    """Return an image turned by its EXIF tag, in mode L or RGB."""
    ImageOps.exif_transpose(image, in_place=True)
    if image.mode == "L" or (image.mode == "RGB" and not image.has_transparency_data):
        return image
    if image.mode == "F" or image.mode.startswith("I"):
        # 16-bit grey: 0..65535 becomes 0..255, where PIL's own conversion clips at 255
        values = np.asarray(image)
        if values.dtype.kind == "f" or values.min() < 0 or values.max() > 65535:
            raise ValueError(
                f"its grey values (mode {image.mode}) do not fit 16 bits; save it with 8 or 16"
            )
        return Image.fromarray(((values.astype(np.uint32) * 255 + 32767) // 65535).astype(np.uint8))
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        white = Image.new("RGBA", layer.size, "white")
        return Image.alpha_composite(white, layer).convert("RGB")
    return image.convert("RGB")


def is_dim(source: Path) -> bool:
    """Return whether a picture is stored with 16 bits and uses 14 or fewer, as cameras do."""
    with opened(source) as image:
        deep = image.mode.startswith("I") or ";16" in str(vars(image)["tile"])
        return deep and bool(np.asarray(upright(image)).max() <= DIM)


@dataclass(eq=False)
class Opener:
    """Opens image number i below a root; a class, so that worker processes can receive it.

    Images are cropped to their ``boxes`` (N, 4), if there are any: left, top, right and bottom,
    rounded to whole pixels. The part of a box beyond the edges of the image is left out.
    """

    root: Path
    paths: Sequence[str]
    boxes: np.ndarray | None = None

    def __call__(self, index: int) -> Image.Image:
        image = open_image(self.root / self.paths[index])
        return image if self.boxes is None else self._cropped(image, index, self.boxes)

    def is_dim(self, index: int) -> bool:
        """Return whether image number i uses few of its bits; see ``is_dim``."""
        return is_dim(self.root / self.paths[index])

    def stored(self, index: int) -> Picture:
        """Return image number i as it is stored; see ``open_pixels``."""
        picture = open_pixels(self.root / self.paths[index], stored=True)
        if self.boxes is None:
            return picture
        image = Image.fromarray(picture) if isinstance(picture, np.ndarray) else picture
        return self._cropped(image, index, self.boxes)

    def _cropped(self, image: Image.Image, index: int, boxes: np.ndarray) -> Image.Image:
        box = [round(edge) for edge in boxes[index].tolist()]
        left = max(box[0], 0)
        top = max(box[1], 0)
        right = min(box[2], image.width)
        bottom = min(box[3], image.height)
        if left >= right or top >= bottom:
            raise DataError(
                f"{self.root / self.paths[index]} is {image.width} x {image.height} pixels, and "
                f"its box {box} lies outside; get the image and the ground truth again"
            )
        return image.crop((left, top, right, bottom))


class ReducingOpener(Opener):
    """An opener that can also decode images at a part of their size."""

    def reduced(self, index: int, divisor: Divisor) -> Picture:
        """Return image number i; see ``open_pixels``."""
        return open_pixels(self.root / self.paths[index], divisor=divisor)
