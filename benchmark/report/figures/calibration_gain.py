"""Relative gain from the last step of the ablation against batch size (as ROADMAP v2, Fig. 5)."""

from __future__ import annotations

from benchmark.report.drawing.drawing import Drawing, legend_below
from benchmark.report.drawing.panels import (
    Series,
    by_batch_size,
    keys_of,
    left_out,
    panel_grid,
    rows_of,
)
from benchmark.report.drawing.style import INK, SERIES, SINGLE, line, styled
from benchmark.report.figures import FIGURES
from benchmark.report.inputs import WHERE, Inputs, records
from benchmark.report.labels import (
    confidence,
    dataset_label,
    loss_label,
    metric_label,
    metric_order,
)
from benchmark.report.render.table import NothingToShow

TITLE = "Relative gain of calibration"


@FIGURES.register("calibration_gain", display=TITLE)
def build(inputs: Inputs) -> Drawing:
    """Return the gain in percent of the loss before it: a panel per dataset, a line per metric."""
    gain, study = inputs.gain, inputs.study
    if gain.empty:
        raise NothingToShow("the last two losses of the ablation have no seed in common yet")
    metrics = metric_order(gain["metric"], study)[: len(SERIES)]
    gain = gain[gain["metric"].isin(metrics)]
    sizes, panels = sorted(gain["batch_size"].unique()), keys_of(gain, WHERE)
    loss, against = (loss_label(gain[column].iloc[0], study) for column in ("loss", "against"))
    points = gain.rename(columns={"gain": "mean", "ci_low": "low", "ci_high": "high"})
    columns = min(len(panels), 2)
    with styled():
        figure, grid = panel_grid(panels, columns, (SINGLE * columns, 2.3), 0.4)
        for axes, where in grid:
            here = rows_of(points, **dict(zip(WHERE, where, strict=True)))
            axes.axhline(0, color=INK, linewidth=0.7)
            series = [
                Series(metric_label(metric), line(style), rows_of(here, metric=metric))
                for metric, style in zip(metrics, SERIES, strict=False)
            ]
            by_batch_size(axes, sizes, series, width=0.3)
            axes.set_ylabel("relative gain (%)")
            title = dataset_label(*where) if len(panels) > 1 else f"{loss} over {against}"
            axes.set_title(title, loc="left")
        legend_below(figure)
    caption = (
        f"Gain of {loss} over {against} in percent of the latter's score, mean over seeds with "
        f"its {confidence(study)} t interval. Above 0 the added term helps; an interval across 0 "
        f"leaves it open.{left_out(panels)}"
    )
    told = "; ".join(
        f"{metric_label(row.metric)} {row.gain:+.1f} percent at batch size {row.batch_size}"
        for row in records(gain.sort_values(["metric", "batch_size"]).head(8))
    )
    alt = f"Relative gain of {loss} over {against} against batch size: {told}."
    return Drawing(TITLE, caption, alt, figure, gain)
