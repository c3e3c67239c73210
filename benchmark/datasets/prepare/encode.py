"""One image as a packed copy stores it: upright, short side bounded, in few bytes."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from benchmark.core.errors import DataError
from benchmark.core.paths import open_regular, path_below
from benchmark.datasets.io.images import image_format, open_image

ENCODING_VERSION = 1  # raise when the bytes change
QUALITY = 95
LOSSY = ("JPEG", "MPO", "WEBP")


@dataclass(frozen=True)
class Encoder:
    """Returns the bytes of the image at ``root / path``, or its error as text.

    Images are shrunk to ``side`` pixels on the shorter side, never enlarged: a smaller upright JPEG
    or PNG keeps its very bytes. Shrinking is bilinear, as in evaluation, which therefore sees the
    same pixels, to one grey level, when it asks for the same side. Lossy formats become JPEG
    (quality 95, full colour resolution), all others lossless PNG. Without ``compressed`` every
    image is stored as plain pixels (PPM or PGM): several times the bytes, and nothing to decode.
    """

    root: Path
    side: int
    compressed: bool = True

    def __call__(self, path: str) -> bytes | str:
        try:
            file = path_below(self.root, path)
            with open_regular(file) as stream:
                content = stream.read()
            image = open_image(io.BytesIO(content), str(file))
            kind, as_stored = image_format(io.BytesIO(content), str(file))
        except OSError as error:
            return f"cannot read {file}: {error.strerror}"
        except DataError as error:
            return str(error)
        if min(image.size) > self.side:
            scale = self.side / min(image.size)
            width, height = (max(self.side, round(length * scale)) for length in image.size)
            image = image.resize((width, height), Image.Resampling.BILINEAR)
        elif self.compressed and as_stored and kind in ("JPEG", "PNG"):
            return content
        stream = io.BytesIO()
        if not self.compressed:
            image.save(stream, "PPM")
        elif kind in LOSSY:
            image.save(stream, "JPEG", quality=QUALITY, subsampling=0)
        else:
            image.save(stream, "PNG")
        return stream.getvalue()
