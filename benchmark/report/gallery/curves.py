"""The precision-recall curves of one query under two losses, over each other."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from benchmark.report.drawing.drawing import Drawing, new_figure
from benchmark.report.drawing.style import line, styled
from benchmark.report.gallery.neighbours import Neighbours, average_precision
from benchmark.report.gallery.record import RunSide
from benchmark.report.numbers import percent

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
