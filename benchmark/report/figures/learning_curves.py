"""Test score against epoch: does training still move at its end, and where do losses part?"""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.report.figures import FIGURES
from benchmark.report.figures.drawing import Drawing, legend_below, new_figure
from benchmark.report.figures.panels import PANELS, bases, place_title, span
from benchmark.report.figures.style import DOUBLE, line, styled
from benchmark.report.tables.labels import loss_label, loss_order, metric_label, metric_order
from benchmark.report.tables.select import GROUP, scores
from benchmark.report.tables.table import NothingToShow


@FIGURES.register("learning_curves", display="Learning curves")
def build(runs: pd.DataFrame, stats: dict[str, pd.DataFrame], study: Any) -> Drawing:
    """Returns one panel per dataset and batch size: mean over seeds, band of one standard deviation."""
    values = scores(runs, study, "curve")
    metric = metric_order(values["metric"].unique(), study)[0]
    values = values[values["metric"] == metric]
    if values["epoch"].nunique() < 2:
        raise NothingToShow(
            "every run was evaluated after one epoch only, so there is no curve to draw"
        )
    grouped = values.groupby([*GROUP, "loss", "epoch"], observed=True)["value"]
    curves = grouped.agg(mean="mean", sd="std", n="count").reset_index()
    panels = list(curves.groupby(GROUP, observed=True).groups)
    shown = panels[:PANELS]
    places = {panel[:3] for panel in panels}
    columns = min(len(shown), 3)
    rows = -(-len(shown) // columns)
    losses = loss_order(curves["loss"].unique(), study)
    family, handles = bases(runs), {}
    with styled():
        figure, grid = new_figure(DOUBLE, 2.5 * rows + 0.5, rows, columns, sharey=len(places) == 1)
        for axes, panel in zip(grid.flat, shown, strict=False):
            part = curves[(curves[GROUP] == list(panel)).all(axis=1)]
            for loss in losses:
                curve = part[part["loss"] == loss].sort_values("epoch")
                if curve.empty:
                    continue
                style = line(loss, family.get(loss))
                low, high = (
                    100 * (curve["mean"] + sign * curve["sd"].fillna(0)) for sign in (-1, 1)
                )
                axes.fill_between(
                    curve["epoch"], low, high, color=style["color"], alpha=0.12, linewidth=0
                )
                (handle,) = axes.plot(
                    curve["epoch"], 100 * curve["mean"], markersize=3, **_sparse(style, len(curve))
                )
                handles.setdefault(loss_label(loss, study), handle)
            axes.set_xlabel("epoch")
            axes.set_ylabel(f"{metric_label(metric)} (%)")
            axes.set_title(
                place_title(panel[:3], len(places) > 1, f"batch size {panel[3]}"), loc="left"
            )
            axes.xaxis.get_major_locator().set_params(integer=True, nbins="auto")
        for axes in grid.flat[len(shown) :]:
            axes.remove()
        legend_below(figure, handles)
    caption = (
        f"Test {metric_label(metric)} after each evaluated epoch: mean over seeds, band of one standard deviation. "
        "The last epoch is the headline number; nothing is selected on these curves."
    )
    if len(panels) > len(shown):
        caption += f" {len(panels) - len(shown)} further panels are only in the CSV file."
    final = curves[curves["epoch"] == curves["epoch"].max()]["mean"]
    alt = (
        f"Curves of {metric_label(metric)} over {int(curves['epoch'].max())} epochs for {len(losses)} losses in "
        f"{len(shown)} panels; at the last epoch {span(final)} percent."
    )
    return Drawing("Learning curves", caption, alt, figure, curves)


def _sparse(style: dict, count: int) -> dict:
    """Returns the style with at most about ten markers along a curve."""
    return {**style, "markevery": max(1, count // 10)}
