"""One query as pictures: its nearest items in a strip, and its precision-recall curves."""

import io
from collections.abc import Mapping

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw

from benchmark.report.drawing.drawing import Drawing, new_figure
from benchmark.report.drawing.style import line, styled
from benchmark.report.gallery.neighbours import Neighbours, average_precision
from benchmark.report.numbers import percent
from benchmark.report.records import RunSide

SIDE = 64  # pixels of a thumbnail
FRAME = 4
GAP = 6
AFTER_QUERY = 16
DASH = 8
_BAND = 16  # below each picture, for its mark
_COLOURS = 128  # of the palette: enough for thumbnails, a third of the bytes
MATCH, MISMATCH, QUERY = (18, 144, 108, 255), (208, 71, 42, 255), (123, 129, 144, 255)
_TICK = ((-6, 0, -2, 4), (-2, 4, 6, -5))
_CROSS = ((-5, -5, 5, 5), (-5, 5, 5, -5))


def strip(query: np.ndarray, retrieved: np.ndarray, matches: np.ndarray) -> Image.Image:
    """Return the strip of uint8 pictures ``query`` (S, S, 3) and ``retrieved`` (K, S, S, 3).

    The ground is transparent. A match has a solid frame and a tick below it, anything else a dashed
    frame and a cross.
    """
    cell = SIDE + 2 * FRAME
    width = cell + AFTER_QUERY + len(retrieved) * (cell + GAP)
    canvas = Image.new("RGBA", (width, cell + _BAND), (0, 0, 0, 0))
    draw = ImageDraw.Draw(canvas)
    _paste(canvas, query, 0)
    draw.rectangle((0, 0, cell - 1, cell - 1), outline=QUERY, width=2)
    for number, (picture, match) in enumerate(zip(retrieved, matches, strict=True)):
        left = cell + AFTER_QUERY + number * (cell + GAP)
        _paste(canvas, picture, left)
        if match:
            edge = (left, 0, left + cell - 1, cell - 1)
            draw.rectangle(edge, outline=MATCH, width=FRAME - 1)
        else:
            _dashed(draw, left, cell)
        x, y = left + cell // 2, cell + _BAND // 2
        for x0, y0, x1, y1 in _TICK if match else _CROSS:
            ends = (x + x0, y + y0, x + x1, y + y1)
            draw.line(ends, fill=MATCH if match else MISMATCH, width=3)
    return canvas


def to_png(image: Image.Image) -> bytes:
    """Return the image as a small PNG: equal images give equal bytes."""
    stream = io.BytesIO()
    palette = image.quantize(_COLOURS, method=Image.Quantize.FASTOCTREE)
    palette.save(stream, format="PNG", optimize=True)
    return stream.getvalue()


def _paste(canvas: Image.Image, pixels: np.ndarray, left: int) -> None:
    picture = Image.fromarray(pixels).convert("RGBA").resize((SIDE, SIDE))
    canvas.paste(picture, (left + FRAME, FRAME))


def _dashed(draw: ImageDraw.ImageDraw, left: int, cell: int) -> None:
    for start in range(0, cell, 2 * DASH):
        stop = min(start + DASH, cell) - 1
        for near in (0, cell - FRAME + 1):
            far = near + FRAME - 2
            draw.rectangle((left + start, near, left + stop, far), fill=MISMATCH)
            draw.rectangle((left + near, start, left + far, stop), fill=MISMATCH)


WIDTH, HEIGHT = 2.5, 1.9  # inches
_MARKED = 24  # points from which a curve is drawn without markers


def draw_curves(
    row: int, sides: Mapping[RunSide, Neighbours], bases: Mapping[str, str], title: str
) -> Drawing:
    """Return the figure of a query with positives; ``bases``: the losses' registry names."""
    parts, told = [], []
    with styled():
        figure, grid = new_figure(WIDTH, HEIGHT)
        axes = grid[0, 0]
        for side, neighbours in sides.items():
            recall, precision = neighbours.curve(row)
            style = line(side.loss, bases.get(side.loss))
            if len(recall) > _MARKED:
                style["marker"] = ""
            # From the first match to the left edge, precision is that of the first match.
            x, y = [0.0, *recall], [precision[0], *precision]
            axes.plot(x, y, label=side.display, markersize=3, **style)
            parts.append(
                pd.DataFrame({"loss": side.loss, "recall": recall, "precision": precision})
            )
            told.append(f"{side.display} {percent(average_precision(neighbours.ranks[row]), 1)}%")
        axes.set_ylim(-0.03, 1.05)
        axes.set_xlim(-0.03, 1.03)
        axes.set_xlabel("recall")
        axes.set_ylabel("precision")
        axes.legend(loc="best", handlelength=2.2)
    words = f"Precision against recall; average precision: {', '.join(told)}."
    return Drawing(title, words, words, figure, pd.concat(parts, ignore_index=True))
