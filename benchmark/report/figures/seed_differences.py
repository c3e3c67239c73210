"""Differences to the baseline, seed by seed: is an advantage the same everywhere or one lucky run?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmark.report.figures import FIGURES
from benchmark.report.figures.drawing import Drawing, new_figure
from benchmark.report.figures.panels import PANELS, bases, place_title
from benchmark.report.figures.style import DOUBLE, FAINT, INK, look, styled
from benchmark.report.tables.labels import (
    confidence,
    loss_label,
    loss_order,
    metric_label,
    metric_order,
)
from benchmark.report.tables.select import GROUP, scores
from benchmark.report.tables.table import NothingToShow
from benchmark.stats.intervals import t_interval


@FIGURES.register("seed_differences", display="Differences to the baseline by seed")
def build(runs: pd.DataFrame, stats: dict[str, pd.DataFrame], study: Any) -> Drawing:
    """Returns one panel per dataset, batch size and metric; a small mark per seed, mean and interval above."""
    values = scores(runs, study)
    baseline = study.comparison.baseline
    keys = [*GROUP, "metric", "seed"]
    own = values.loc[values["loss"] == baseline, [*keys, "value"]]
    pairs = values[values["loss"] != baseline].merge(own, on=keys, suffixes=("", "_baseline"))
    if pairs.empty:
        raise NothingToShow(
            f"no seed has finished both for the baseline ({loss_label(baseline, study)}) and for another loss"
        )
    pairs = pairs.assign(difference=pairs["value"] - pairs["value_baseline"])
    columns_out = [*GROUP, "metric", "loss", "seed", "value", "value_baseline", "difference"]
    pairs = pairs[columns_out].sort_values(columns_out[:7])
    metrics = metric_order(pairs["metric"].unique(), study)
    cells = list(pairs.groupby(GROUP, observed=True).groups)
    panels = [(cell, metric) for cell in cells for metric in metrics]
    shown = panels[:PANELS]
    columns = len(metrics) if len(metrics) in (2, 3) else min(3, len(shown))
    rows = -(-len(shown) // columns)
    losses = loss_order(pairs["loss"].unique(), study)
    family, several = bases(runs), len({cell[:3] for cell in cells}) > 1
    with styled():
        height = rows * (0.6 + 0.2 * len(losses)) + 0.2
        figure, grid = new_figure(DOUBLE, height, rows, columns, sharey=True)
        for axes, (cell, metric) in zip(grid.flat, shown, strict=False):
            part = pairs[(pairs[GROUP] == list(cell)).all(axis=1) & (pairs["metric"] == metric)]
            _panel(axes, part, losses, family, study.comparison.alpha)
            axes.set_title(
                place_title(cell[:3], several, f"batch size {cell[3]}", metric_label(metric)),
                loc="left",
            )
        for index, axes in enumerate(grid.flat):
            if index >= len(shown):
                axes.remove()
            elif index + columns >= len(shown):
                axes.set_xlabel("difference (percentage points)")
        grid[0, 0].set_yticks(range(len(losses)), [loss_label(loss, study) for loss in losses])
        grid[0, 0].set_ylim(len(losses) - 0.5, -0.5)
    name = loss_label(baseline, study)
    caption = (
        f"Difference to {name} for each seed (small marks: same data, initial weights, batches and augmentation) and "
        f"their mean with the {confidence(study)} t interval (large mark and bar). An interval across 0 is no "
        "evidence of a difference; "
        "the tests with correction are in the table of paired tests."
    )
    if len(panels) > len(shown):
        caption += f" {len(panels) - len(shown)} further panels are only in the CSV file."
    means = pairs.groupby([*GROUP, "metric", "loss"], observed=True)["difference"].mean()
    alt = (
        f"Dot plot of seed-wise differences to {name} for {len(losses)} losses; mean differences from "
        f"{100 * means.min():+.1f} to {100 * means.max():+.1f} percentage points."
    )
    return Drawing("Differences to the baseline by seed", caption, alt, figure, pairs)


def _panel(
    axes: Any, part: pd.DataFrame, losses: list[str], family: dict[str, str], alpha: float
) -> None:
    axes.axvline(0, color=INK, linewidth=0.7)
    axes.grid(axis="y", visible=False)
    for row, loss in enumerate(losses):
        points = 100 * part.loc[part["loss"] == loss, "difference"].to_numpy()
        if not len(points):
            axes.text(
                0.02, row, "no pair", color=FAINT, va="center", transform=axes.get_yaxis_transform()
            )
            continue
        style = look(loss, family.get(loss))
        axes.plot(
            points,
            np.full(len(points), row + 0.17),
            "|",
            color=style.colour,
            markersize=4,
            alpha=0.9,
        )
        found = t_interval(points, 1 - alpha)
        face = "white" if style.open else style.colour
        bar = found.high - found.mean if found.n > 1 else None
        axes.errorbar(
            found.mean,
            row - 0.13,
            xerr=bar,
            color=style.colour,
            marker=style.marker,
            markerfacecolor=face,
        )
