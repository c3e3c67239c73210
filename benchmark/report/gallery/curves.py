"""The precision-recall curves of one query under two losses, over each other."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmark.report.figures.drawing import Drawing, new_figure
from benchmark.report.figures.style import line, styled
from benchmark.report.gallery.neighbours import Neighbours

WIDTH, HEIGHT = 2.5, 1.9  # inches
_MARKED = 24  # points from which a curve is drawn without markers


def draw_curves(row: int, sides: dict[str, tuple[str, str, Neighbours]], title: str) -> Drawing:
    """Returns the figure for one kept query; ``sides``: {name shown: (loss label, registry name, what it found)}.

    With the ranks of all positives: precision at each of them over recall. Without: precision among the first k over k.
    """
    exact = all(found.ranks is not None for _, _, found in sides.values())
    parts = []
    with styled():
        figure, grid = new_figure(WIDTH, HEIGHT)
        axes = grid[0, 0]
        for shown, (loss, base, found) in sides.items():
            x, precision = found.curve(row)
            style = line(loss, base)
            if len(x) > _MARKED:
                style["marker"] = ""
            # From the first match to the left edge, precision is that of the first match.
            start = [0.0] if exact and len(x) else []
            axes.plot(
                [*start, *x],
                [*precision[: len(start)], *precision],
                label=shown,
                markersize=3,
                **style,
            )
            parts.append(
                pd.DataFrame({"loss": loss, "recall" if exact else "k": x, "precision": precision})
            )
        axes.set_ylim(-0.03, 1.05)
        axes.set_xlim(-0.03 if exact else 0.5, 1.03 if exact else None)
        if not exact:
            axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel("recall" if exact else "first k")
        axes.set_ylabel("precision")
        axes.legend(loc="best", handlelength=2.2)
    quality = ", ".join(
        f"{shown} {_percent(found.quality()[row])}" for shown, (_, _, found) in sides.items()
    )
    word = (
        "Precision against recall; average precision"
        if exact
        else "Precision among the first k; at the last k"
    )
    return Drawing(
        title,
        f"{word}: {quality}.",
        f"{word}: {quality}.",
        figure,
        pd.concat(parts, ignore_index=True),
    )


def _percent(value: float) -> str:
    return "none" if not np.isfinite(value) else f"{100 * value:.1f}%"
