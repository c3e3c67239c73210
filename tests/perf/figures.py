"""The figures of the benchmark: loss time and memory against batch size, evaluation time against gallery size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from benchmark.report.figures.drawing import Drawing, legend_below, new_figure
from benchmark.report.figures.style import DOUBLE, FAINT, INK, SINGLE, line, styled

# Alternatives are grey, to be told apart by marker and dash; what bounds all methods from below is a plain line.
_MARKS = ("o", "s", "^", "D", "v", "P")
_DASHES = ("--", ":", "-.", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))


def draw_losses(timings: Sequence[Any], ours: Sequence[str]) -> Drawing:
    """Returns time and peak memory against batch size on logarithmic axes, from rows with ``batch_size``,
    ``method``, ``milliseconds`` and ``peak_mb``."""
    data = pd.DataFrame([vars(item) for item in timings])
    with styled():
        figure, grid = new_figure(DOUBLE, 3.9, 1, 2)
        handles = _lines(grid[0, 0], data, "batch_size", "milliseconds", ours)
        _lines(grid[0, 1], data, "batch_size", "peak_mb", ours)
        grid[0, 0].set_ylabel("forward + backward (ms)")
        grid[0, 1].set_ylabel("peak memory of tensors (MiB)")
        for axes in grid.flat:
            axes.set_xlabel("batch size")
        legend_below(figure, handles)
    caption = "Time and peak memory of one forward and backward pass against batch size; logarithmic axes."
    slowest = data.loc[data["milliseconds"].idxmax()]
    alt = (
        f"Lines for {data['method'].nunique()} methods at batch sizes {data['batch_size'].min()} to "
        f"{data['batch_size'].max()}; the slowest point is {slowest['method']} at {slowest['batch_size']} with "
        f"{slowest['milliseconds']:.0f} ms."
    )
    return Drawing("Cost of the losses", caption, alt, figure, data)


def draw_evaluation(
    rows: Sequence[dict[str, Any]], ours: Sequence[str], exponents: dict[str, float]
) -> Drawing:
    """Returns evaluation time against the number of items on logarithmic axes, from rows with ``items``,
    ``method`` and ``seconds``; the legend gives the fitted ``exponents`` of methods that have one."""
    data = pd.DataFrame(rows)
    with styled():
        figure, grid = new_figure(SINGLE + 1.2, 3.4)
        handles = _lines(grid[0, 0], data, "items", "seconds", ours)
        handles = {
            f"{name}: $N^{{{exponents[name]:.2f}}}$" if name in exponents else name: handle
            for name, handle in handles.items()
        }
        grid[0, 0].set_xlabel("items, each queries all others")
        grid[0, 0].set_ylabel("time (s)")
        legend_below(figure, handles, columns=2)
    caption = "Time of exact evaluation against the number of items N; logarithmic axes. Powers of N are fitted to the times."
    alt = f"Lines for {data['method'].nunique()} methods from {data['items'].min()} to {data['items'].max()} items."
    return Drawing("Cost of evaluation", caption, alt, figure, data)


def _lines(axes: Any, data: pd.DataFrame, x: str, y: str, ours: Sequence[str]) -> dict[str, Any]:
    handles = {}
    others = [name for name in data["method"].unique() if name not in ours]
    for name in data["method"].unique():
        points = data[data["method"] == name]
        handles[name] = axes.plot(points[x], points[y], **_look(name, ours, others))[0]
    axes.set_xscale("log", base=2 if x == "batch_size" else 10)
    axes.set_yscale("log")
    sizes = sorted(data[x].unique())
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
    return handles


def _look(name: str, ours: Sequence[str], others: Sequence[str]) -> dict[str, Any]:
    if name in ours:
        return line(name)
    place = others.index(name)
    if place == 0:  # the floor is measured first
        return {"color": INK, "linestyle": "-", "linewidth": 1.6}
    return {
        "color": FAINT,
        "linestyle": _DASHES[place % 6],
        "marker": _MARKS[place % 6],
        "markerfacecolor": "white",
    }
