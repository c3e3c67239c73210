"""One query and its nearest items as a strip of pictures: right and wrong differ in colour, line and mark."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageDraw

SIDE = 64  # pixels of a thumbnail
FRAME = 4
GAP = 6
AFTER_QUERY = 16
_BAND = 16  # below each picture, for its mark
RIGHT, WRONG, QUERY = (18, 144, 108, 255), (208, 71, 42, 255), (123, 129, 144, 255)
_COLOURS = 128  # of the palette: enough for thumbnails, a third of the bytes


def strip(query: np.ndarray, found: np.ndarray, matches: np.ndarray) -> Image.Image:
    """Returns the strip of uint8 pictures ``query`` (S, S, 3) and ``found`` (K, S, S, 3), on transparent ground.

    A match has a solid frame and a tick below it, anything else a dashed frame and a cross.
    """
    cell = SIDE + 2 * FRAME
    width = cell + AFTER_QUERY + len(found) * (cell + GAP)
    canvas = Image.new("RGBA", (width, cell + _BAND), (0, 0, 0, 0))
    draw = ImageDraw.Draw(canvas)
    _picture(canvas, query, 0)
    draw.rectangle((0, 0, cell - 1, cell - 1), outline=QUERY, width=2)
    for place, (picture, match) in enumerate(zip(found, matches, strict=True)):
        left = cell + AFTER_QUERY + place * (cell + GAP)
        _picture(canvas, picture, left)
        _frame(draw, left, cell, bool(match))
        (_tick if match else _cross)(draw, left + cell // 2, cell + _BAND // 2)
    return canvas


def to_png(image: Image.Image) -> bytes:
    """Returns the image as a small PNG: equal images give equal bytes."""
    stream = io.BytesIO()
    image.quantize(_COLOURS, method=Image.Quantize.FASTOCTREE).save(
        stream, format="PNG", optimize=True
    )
    return stream.getvalue()


def _picture(canvas: Image.Image, pixels: np.ndarray, left: int) -> None:
    picture = Image.fromarray(pixels).convert("RGBA").resize((SIDE, SIDE))
    canvas.paste(picture, (left + FRAME, FRAME))


def _frame(draw: ImageDraw.ImageDraw, left: int, cell: int, match: bool) -> None:
    edge = (left, 0, left + cell - 1, cell - 1)
    if match:
        draw.rectangle(edge, outline=RIGHT, width=FRAME - 1)
        return
    dash = 8
    for start in range(0, cell, 2 * dash):
        stop = min(start + dash, cell)
        for near in (0, cell - FRAME + 1):
            draw.rectangle((left + start, near, left + stop - 1, near + FRAME - 2), fill=WRONG)
            draw.rectangle((left + near, start, left + near + FRAME - 2, stop - 1), fill=WRONG)


def _tick(draw: ImageDraw.ImageDraw, x: int, y: int) -> None:
    draw.line((x - 6, y, x - 2, y + 4, x + 6, y - 5), fill=RIGHT, width=3)


def _cross(draw: ImageDraw.ImageDraw, x: int, y: int) -> None:
    draw.line((x - 5, y - 5, x + 5, y + 5), fill=WRONG, width=3)
    draw.line((x - 5, y + 5, x + 5, y - 5), fill=WRONG, width=3)
