"""Figures of the benchmark: cost of losses against batch size, of evaluation against items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from benchmark.report.drawing.drawing import Drawing, legend_below, new_figure
from benchmark.report.drawing.style import DOUBLE, FAINT, INK, SINGLE, line, styled

# Alternatives are grey, and differ by marker and dash.
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("--", ":", "-.", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))


def draw_losses(data: pd.DataFrame, ours: Sequence[str]) -> Drawing:
    """Return time and peak memory against batch size, from rows of ``perf.losses``."""
    with styled():
        figure, axes = new_figure(DOUBLE, 3.9, 1, 2)
        _plot(axes[0, 0], data, "batch_size", "milliseconds", ours)
        _plot(axes[0, 1], data, "batch_size", "peak_mb", ours)
        axes[0, 0].set(xlabel="batch size", ylabel="forward + backward (ms)")
        axes[0, 1].set(xlabel="batch size", ylabel="peak memory of tensors (MiB)")
        legend_below(figure)
    slowest = data.loc[data["milliseconds"].idxmax()]
    return Drawing(
        "Cost of the losses",
        "Time and peak memory of one forward and backward pass against batch size; log axes.",
        f"Lines of {data['method'].nunique()} methods at batch sizes {data['batch_size'].min()} to "
        f"{data['batch_size'].max()}; the slowest point is {slowest['method']} at "
        f"{slowest['batch_size']} with {slowest['milliseconds']:.0f} ms.",
        figure,
        data,
    )


def draw_evaluation(
    data: pd.DataFrame, ours: Sequence[str], exponents: dict[str, float]
) -> Drawing:
    """Return time against the number of items; the legend gives the fitted ``exponents``."""
    with styled():
        figure, axes = new_figure(SINGLE + 1.2, 3.4)
        labels = {name: f"{name}: $N^{{{power:.2f}}}$" for name, power in exponents.items()}
        _plot(axes[0, 0], data, "items", "milliseconds", ours, labels)
        axes[0, 0].set(xlabel="items, each queries all others", ylabel="time (ms)")
        legend_below(figure, columns=2)
    return Drawing(
        "Cost of evaluation",
        "Time of exact evaluation against the number of items N, fitted powers of N; log axes.",
        f"Lines of {data['method'].nunique()} methods from {data['items'].min()} to "
        f"{data['items'].max()} items.",
        figure,
        data,
    )


def _plot(
    axes: Any,
    data: pd.DataFrame,
    x: str,
    y: str,
    ours: Sequence[str],
    labels: Mapping[str, str] | None = None,
) -> None:
    """Draw a line per method, under its name or that in ``labels``."""
    # the floor, which is measured first, is a plain line
    others = iter([{"color": INK, "linestyle": "-", "linewidth": 1.6}, *map(_grey, range(6))])
    for name, points in data.groupby("method", sort=False):
        style = line(name) if name in ours else next(others)
        axes.plot(points[x], points[y], label=(labels or {}).get(name, name), **style)
    axes.set_xscale("log", base=2 if x == "batch_size" else 10)
    axes.set_yscale("log")
    sizes = sorted(data[x].unique())
    # a size close to the one before it has no room for its number
    close = [after < 1.6 * before for before, after in pairwise([1, *sizes])]
    axes.set_xticks(
        sizes, ["" if at else f"{size:,}" for size, at in zip(sizes, close, strict=True)]
    )
    axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)


def _grey(number: int) -> dict[str, Any]:
    return {
        "color": FAINT,
        "linestyle": DASHES[number],
        "marker": MARKERS[number],
        "markerfacecolor": "white",
    }
