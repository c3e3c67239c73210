"""One image as it is stored in a packed copy: upright, short side bounded, in as few bytes as it may have."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

from PIL import ExifTags, Image

from benchmark.core.errors import DataError
from benchmark.datasets.io.files import open_image

ENCODING_VERSION = 1  # raise when the bytes change
QUALITY = 95
LOSSY = ("JPEG", "MPO", "WEBP")  # formats that already gave up exactness


@dataclass(frozen=True)
class Encoder:
    """Returns the bytes of the image at ``root / path``, or what is wrong with it as text.

    An image whose shorter side is at most ``side`` pixels is never enlarged: an upright JPEG or PNG keeps its
    very bytes. Larger ones are shrunk bilinearly, as the evaluation does, which therefore sees the same pixels, to
    one grey level, when it asks for the same side. What came from a lossy format becomes JPEG (quality 95, full colour
    resolution), all else stays lossless as PNG. Without ``compressed`` every image is stored as plain pixels (PPM or
    PGM): several times the bytes, exact, and nothing left to decode.
    """

    root: Path
    side: int
    compressed: bool = True

    def __call__(self, path: str) -> bytes | str:
        full = self.root / path
        try:
            content = full.read_bytes()
            picture = open_image(io.BytesIO(content), str(full))
            kind, plain = _format(content)
        except OSError as error:
            return f"cannot read {full}: {error.strerror}"
        except DataError as error:
            return str(error)
        width, height = picture.size
        if min(width, height) <= self.side:
            if plain and self.compressed:
                return content
        else:
            picture = picture.resize(_shrunk(width, height, self.side), Image.Resampling.BILINEAR)
        stream = io.BytesIO()
        if not self.compressed:
            picture.save(stream, "PPM")
        elif kind in LOSSY:
            picture.save(stream, "JPEG", quality=QUALITY, subsampling=0)
        else:
            picture.save(stream, "PNG")
        return stream.getvalue()


def _format(content: bytes) -> tuple[str, bool]:
    """Returns an image's format, and whether its bytes can be stored as they are."""
    with Image.open(io.BytesIO(content)) as picture:
        upright = picture.getexif().get(ExifTags.Base.Orientation, 1) == 1
        return picture.format, upright and picture.format in ("JPEG", "PNG") and picture.mode in (
            "L",
            "RGB",
        )


def _shrunk(width: int, height: int, side: int) -> tuple[int, int]:
    scale = side / min(width, height)
    return max(side, round(width * scale)), max(side, round(height * scale))
