"""Test scores against batch size, mean and interval over seeds."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.report.figures import FIGURES
from benchmark.report.figures.drawing import Drawing, legend_below, new_figure
from benchmark.report.figures.panels import PANELS, bases, batch_axis, dodge, place_title, span
from benchmark.report.figures.style import DOUBLE, line, styled
from benchmark.report.tables.labels import (
    confidence,
    loss_label,
    loss_order,
    metric_label,
    metric_order,
)
from benchmark.report.tables.select import over_seeds, scores


@FIGURES.register("metric_by_batch_size", display="Scores against batch size")
def build(runs: pd.DataFrame, stats: dict[str, pd.DataFrame], study: Any) -> Drawing:
    """Returns one panel per dataset and metric; one batch size gives points without lines."""
    every = over_seeds(scores(runs, study), study.comparison.alpha)
    means = _comparable(every)
    sizes = sorted(means["batch_size"].unique())
    losses = loss_order(means["loss"].unique(), study)
    metrics = metric_order(means["metric"].unique(), study)
    places = list(means.groupby(["dataset", "setting", "split"], observed=True).groups)
    panels = [(place, metric) for place in places for metric in metrics]
    shown = panels[:PANELS]
    columns = min(len(metrics), 3) if len(metrics) > 1 else min(len(shown), 3)
    rows = -(-len(shown) // columns)
    family, offsets, handles = bases(runs), dodge(len(losses)), {}
    with styled():
        figure, grid = new_figure(DOUBLE, 2.3 * rows + 0.5, rows, columns)
        for axes, (place, metric) in zip(grid.flat, shown, strict=False):
            part = means[
                (means["dataset"] == place[0])
                & (means["setting"] == place[1])
                & (means["split"] == place[2])
                & (means["metric"] == metric)
            ]
            for loss, offset in zip(losses, offsets, strict=True):
                points = part[part["loss"] == loss].sort_values("batch_size")
                if points.empty:
                    continue
                where = [sizes.index(size) + offset for size in points["batch_size"]]
                bars = 100 * (points["high"] - points["mean"]).fillna(0).to_numpy()
                handle = axes.errorbar(
                    where, 100 * points["mean"], yerr=bars, **line(loss, family.get(loss))
                )
                handles.setdefault(loss_label(loss, study), handle)
            batch_axis(axes, sizes)
            # Intervals of two or three seeds reach beyond what a score can be; the axis does not.
            low, high = axes.get_ylim()
            axes.set_ylim(max(low, 0), min(high, 100))
            axes.set_ylabel(f"{metric_label(metric)} (%)")
            axes.set_title(place_title(place, len(places) > 1, metric_label(metric)), loc="left")
        for axes in grid.flat[len(shown) :]:
            axes.remove()
        legend_below(figure, handles)
    caption = (
        f"Test score at the last epoch against batch size: mean over seeds with its {confidence(study)} t interval "
        "(none where a single seed finished). Points are moved sideways so that none covers another."
    )
    if len(panels) > len(shown):
        caption += f" {len(panels) - len(shown)} further panels are only in the CSV file."
    if len(means) < len(every):
        caption += " Settings with one batch size are only in the CSV file, too."
    ranges = "; ".join(
        f"{metric_label(m)} {span(means.loc[means['metric'] == m, 'mean'])} percent"
        for m in metrics
    )
    alt = f"Points with error bars for {len(losses)} losses at batch sizes {', '.join(map(str, sizes))}: {ranges}."
    return Drawing("Scores against batch size", caption, alt, figure, every)


def _comparable(means: pd.DataFrame) -> pd.DataFrame:
    """Returns the scores of losses with two batch sizes or more in a place; all of them where there are none."""
    sizes = means.groupby(["dataset", "setting", "split", "loss"], observed=True)[
        "batch_size"
    ].transform("nunique")
    return means[sizes > 1] if (sizes > 1).any() else means
