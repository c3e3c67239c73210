"""Time inside the loss against batch size."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.report.figures import FIGURES
from benchmark.report.figures.drawing import Drawing, legend_below, new_figure
from benchmark.report.figures.panels import PANELS, bases, batch_axis, dodge, place_title
from benchmark.report.figures.style import DOUBLE, SINGLE, line, styled
from benchmark.report.tables.labels import loss_label, loss_order
from benchmark.report.tables.select import cost_values
from benchmark.report.tables.table import NothingToShow


@FIGURES.register("loss_cost", display="Cost of the loss")
def build(runs: pd.DataFrame, stats: dict[str, pd.DataFrame], study: Any) -> Drawing:
    """Returns milliseconds per step against batch size on a logarithmic axis; bars from least to greatest seed."""
    costs = cost_values(runs)
    if "loss_ms" not in costs:
        raise NothingToShow("no finished run has recorded the time inside its loss")
    costs = costs[costs["loss_ms"].notna() & (costs["loss_ms"] > 0)]
    if costs.empty:
        raise NothingToShow("no finished run has recorded the time inside its loss")
    keys = ["dataset", "setting", "batch_size", "loss"]
    grouped = costs.groupby(keys, observed=True)["loss_ms"]
    times = grouped.agg(mean="mean", least="min", most="max", n="count").reset_index()
    sizes = sorted(times["batch_size"].unique())
    losses = loss_order(times["loss"].unique(), study)
    places = list(times.groupby(["dataset", "setting"], observed=True).groups)
    shown = places[:PANELS]
    columns = min(len(shown), 3)
    rows = -(-len(shown) // columns)
    family, offsets, handles = bases(runs), dodge(len(losses)), {}
    with styled():
        width = SINGLE + 0.6 if len(shown) == 1 else DOUBLE
        figure, grid = new_figure(width, 2.4 * rows + 0.8, rows, columns)
        for axes, place in zip(grid.flat, shown, strict=False):
            part = times[(times["dataset"] == place[0]) & (times["setting"] == place[1])]
            for loss, offset in zip(losses, offsets, strict=True):
                points = part[part["loss"] == loss].sort_values("batch_size")
                if points.empty:
                    continue
                where = [sizes.index(size) + offset for size in points["batch_size"]]
                bars = [points["mean"] - points["least"], points["most"] - points["mean"]]
                handle = axes.errorbar(
                    where, points["mean"], yerr=bars, **line(loss, family.get(loss))
                )
                handles.setdefault(loss_label(loss, study), handle)
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter(_sparse_ticks)
            batch_axis(axes, sizes)
            axes.set_ylabel("time in the loss (ms per step)")
            axes.set_title(place_title(place, len(places) > 1), loc="left")
        for axes in grid.flat[len(shown) :]:
            axes.remove()
        legend_below(figure, handles, columns=3 if len(shown) == 1 else 4)
    caption = (
        "Time inside the loss, forward and backward, per training step: mean over seeds, bars from the fastest to the "
        "slowest seed. Logarithmic axis."
    )
    alt = (
        f"Points for {len(losses)} losses at batch sizes {', '.join(map(str, sizes))}: "
        f"{times['mean'].min():.2g} to {times['mean'].max():.2g} milliseconds per step."
    )
    return Drawing("Cost of the loss", caption, alt, figure, times)


def _sparse_ticks(value: float, position: int | None) -> str:
    """Returns labels for 2 and 5 times a power of ten, where a logarithmic axis spans less than a decade."""
    digit = f"{value:.0e}"[0]
    return f"{value:g}" if digit in "25" else ""
