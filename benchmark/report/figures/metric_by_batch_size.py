"""Test scores against batch size, mean and interval over seeds."""

from __future__ import annotations

import pandas as pd

from benchmark.report.drawing.drawing import Drawing, legend_below
from benchmark.report.drawing.panels import (
    by_batch_size,
    keys_of,
    left_out,
    loss_series,
    panel_grid,
    panel_title,
    rows_of,
    span,
)
from benchmark.report.drawing.style import DOUBLE, styled
from benchmark.report.figures import FIGURES
from benchmark.report.inputs import WHERE, Inputs
from benchmark.report.labels import (
    confidence,
    loss_order,
    metric_label,
    metric_order,
)

TITLE = "Scores against batch size"


@FIGURES.register("metric_by_batch_size", display=TITLE)
def build(inputs: Inputs) -> Drawing:
    """Return one panel per dataset and metric; one batch size gives points without lines."""
    study = inputs.study
    data = inputs.last[
        [*WHERE, "batch_size", "loss", "metric", "mean", "sd", "n", "ci_low", "ci_high"]
    ].rename(columns={"ci_low": "low", "ci_high": "high"})
    means = _comparable(data)
    sizes = sorted(means["batch_size"].unique())
    losses, metrics = loss_order(means["loss"], study), metric_order(means["metric"], study)
    places = keys_of(means, WHERE)
    panels = [(place, metric) for place in places for metric in metrics]
    percent = means.assign(**{name: 100 * means[name] for name in ("mean", "low", "high")})
    with styled():
        columns = min(len(metrics) if len(metrics) > 1 else len(panels), 3)
        figure, grid = panel_grid(panels, columns, (DOUBLE, 2.3), 0.5)
        for axes, (place, metric) in grid:
            here = rows_of(percent, metric=metric, **dict(zip(WHERE, place, strict=True)))
            by_batch_size(axes, sizes, loss_series(inputs, losses, here))
            # Intervals of two or three seeds reach beyond what a score can be; the axis does not.
            low, high = axes.get_ylim()
            axes.set_ylim(max(low, 0), min(high, 100))
            axes.set_ylabel(f"{metric_label(metric)} (%)")
            title = panel_title(place, len(places) > 1, metric_label(metric))
            axes.set_title(title, loc="left")
        legend_below(figure)
    caption = (
        f"Test score at the last epoch against batch size: mean over seeds with its "
        f"{confidence(study)} t interval (none where a single seed finished). Points are moved "
        f"sideways so that none covers another.{left_out(panels)}"
    )
    if len(means) < len(data):
        caption += " Settings with one batch size are only in the CSV file."
    ranges = "; ".join(
        f"{metric_label(metric)} {span(rows_of(means, metric=metric)['mean'])} percent"
        for metric in metrics
    )
    alt = (
        f"Points with error bars for {len(losses)} losses at batch sizes "
        f"{', '.join(map(str, sizes))}: {ranges}."
    )
    return Drawing(TITLE, caption, alt, figure, data)


def _comparable(means: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of losses with several batch sizes; all of them where there are none."""
    sizes = means.groupby([*WHERE, "loss"])["batch_size"].transform("nunique")
    return means[sizes > 1] if (sizes > 1).any() else means
