"""Relative gain from the last step of the ablation against batch size (as ROADMAP, Ramzi et al. 2021, Fig. 5)."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.report.figures import FIGURES
from benchmark.report.figures.drawing import Drawing, legend_below, new_figure
from benchmark.report.figures.panels import PANELS, batch_axis, dodge
from benchmark.report.figures.style import INK, SINGLE, styled
from benchmark.report.tables.labels import (
    confidence,
    loss_label,
    metric_label,
    metric_order,
    place_label,
)
from benchmark.report.tables.table import NothingToShow

# Series are metrics here, not losses, so they must not borrow a loss's colour.
_SERIES = (
    ("#2F77A8", "o", "-"),
    ("#A0436B", "s", "--"),
    ("#4C7A34", "^", "-."),
    ("#8561A8", "D", ":"),
)


@FIGURES.register("calibration_gain", display="Relative gain of calibration")
def build(runs: pd.DataFrame, stats: dict[str, pd.DataFrame], study: Any) -> Drawing:
    """Returns the gain in percent of the loss before it, one series per metric, one panel per dataset."""
    gain = stats.get("gain", pd.DataFrame())
    if gain.empty:
        raise NothingToShow(
            "the last two losses of the ablation have no seed in common yet (stats/gain.csv is empty)"
        )
    metrics = metric_order(gain["metric"].unique(), study)[: len(_SERIES)]
    gain = gain[gain["metric"].isin(metrics)]
    sizes = sorted(gain["batch_size"].unique())
    places = list(gain.groupby(["dataset", "setting", "split"]).groups)
    shown = places[:PANELS]
    columns = min(len(shown), 2)
    rows = -(-len(shown) // columns)
    loss, against = (loss_label(gain[column].iloc[0], study) for column in ("loss", "against"))
    handles: dict[str, Any] = {}
    with styled():
        figure, grid = new_figure(SINGLE * columns, 2.3 * rows + 0.4, rows, columns)
        for axes, place in zip(grid.flat, shown, strict=False):
            part = gain[(gain[["dataset", "setting", "split"]] == list(place)).all(axis=1)]
            axes.axhline(0, color=INK, linewidth=0.7)
            for metric, offset, (colour, marker, dash) in zip(
                metrics, dodge(len(metrics), 0.3), _SERIES, strict=False
            ):
                points = part[part["metric"] == metric].sort_values("batch_size")
                if points.empty:
                    continue
                where = [sizes.index(size) + offset for size in points["batch_size"]]
                bars = (points["ci_high"] - points["gain"]).fillna(0)
                handles.setdefault(
                    metric_label(metric),
                    axes.errorbar(
                        where,
                        points["gain"],
                        yerr=bars,
                        color=colour,
                        marker=marker,
                        linestyle=dash,
                    ),
                )
            batch_axis(axes, sizes)
            axes.set_ylabel("relative gain (%)")
            axes.set_title(
                place_label(*place) if len(places) > 1 else f"{loss} over {against}", loc="left"
            )
        for axes in grid.flat[len(shown) :]:
            axes.remove()
        legend_below(figure, handles)
    caption = (
        f"Gain of {loss} over {against} in percent of the latter's score, mean over seeds with its {confidence(study)} "
        "t interval. Above 0 the added term helps; an interval across 0 leaves it open."
    )
    if len(places) > len(shown):
        caption += f" {len(places) - len(shown)} further panels are only in the CSV file."
    listed = "; ".join(
        f"{metric_label(row.metric)} {row.gain:+.1f} percent at batch size {row.batch_size}"
        for row in gain.sort_values(["metric", "batch_size"]).head(8).itertuples()
    )
    alt = f"Relative gain of {loss} over {against} against batch size: {listed}."
    return Drawing("Relative gain of calibration", caption, alt, figure, gain)
