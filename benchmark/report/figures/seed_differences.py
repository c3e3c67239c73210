"""Differences to the baseline, seed by seed: a steady advantage, or one lucky run?"""

from typing import Any

import pandas as pd

from benchmark.report.drawing import DOUBLE, FAINT, INK, Drawing, line, styled
from benchmark.report.figures import FIGURES
from benchmark.report.inputs import CONDITION, Inputs
from benchmark.report.labels import (
    confidence,
    loss_label,
    loss_order,
    metric_label,
    metric_order,
)
from benchmark.report.panels import (
    keys_of,
    left_out,
    panel_grid,
    panel_title,
    rows_of,
)
from benchmark.report.table import NothingToShow

TITLE = "Differences to the baseline by seed"
WIDTHS = {1: 3, 2: 2, 3: 3}  # panels in a row by number of metrics, for metrics in columns


@FIGURES.register("seed_differences", display=TITLE)
def build(inputs: Inputs) -> Drawing:
    """Return one panel per condition and metric: a small mark per seed, mean and interval above."""
    data, study = inputs.differences, inputs.study
    name = loss_label(study.comparison.baseline, study)
    if data.empty:
        raise NothingToShow(
            f"no seed has finished both for the baseline ({name}) and for another loss"
        )
    tests = inputs.tests("baseline").rename(
        columns={"mean": "score", "difference": "mean", "ci_low": "low", "ci_high": "high"}
    )
    tests[["mean", "low", "high"]] *= 100
    conditions = keys_of(data, CONDITION)
    panels = [
        (where, metric) for where in conditions for metric in metric_order(data["metric"], study)
    ]
    columns = min(WIDTHS.get(data["metric"].nunique(), 3), len(panels))
    losses = loss_order(data["loss"], study)
    several = len({where[:3] for where in conditions}) > 1
    with styled():
        height = 0.6 + 0.2 * len(losses)
        figure, grid = panel_grid(panels, columns, (DOUBLE, height), 0.2, sharey=True)
        for number, (axes, (where, metric)) in enumerate(grid):
            here = {"metric": metric, **dict(zip(CONDITION, where, strict=True))}
            axes.axvline(0, color=INK, linewidth=0.7)
            axes.grid(axis="y", visible=False)
            for row, loss in enumerate(losses):
                style = line(loss, inputs.base_losses.get(loss)) | {"linestyle": "none"}
                seeds = rows_of(data, loss=loss, **here)
                _draw_loss(axes, row, seeds, rows_of(tests, loss=loss, **here), style)
            title = panel_title(where[:3], several, f"batch size {where[3]}", metric_label(metric))
            axes.set_title(title, loc="left")
            if number + columns >= len(grid):
                axes.set_xlabel("difference (percentage points)")
        axes = grid[0][0]
        axes.set_yticks(range(len(losses)), [loss_label(loss, study) for loss in losses])
        axes.set_ylim(len(losses) - 0.5, -0.5)
    caption = (
        f"Difference to {name} for each seed (small marks: same data, initial weights, batches and "
        f"augmentation) and their mean with the {confidence(study)} t interval (large mark and "
        "bar). An interval across 0 is no evidence of a difference; the tests with correction are "
        f"in the table of paired tests.{left_out(panels)}"
    )
    alt = (
        f"Dot plot of seed-wise differences to {name} for {len(losses)} losses; mean differences "
        f"from {tests['mean'].min():+.1f} to {tests['mean'].max():+.1f} percentage points."
    )
    return Drawing(TITLE, caption, alt, figure, data)


def _draw_loss(
    axes: Any, row: int, seeds: pd.DataFrame, test: pd.DataFrame, style: dict[str, Any]
) -> None:
    """Draw one loss of a panel: a small mark per seed, and above them the mean's interval."""
    if seeds.empty:
        across = axes.get_yaxis_transform()
        axes.text(0.02, row, "no pair", color=FAINT, va="center", transform=across)
        return
    small = {"color": style["color"], "markersize": 4, "alpha": 0.9}
    axes.plot(100 * seeds["difference"], [row + 0.17] * len(seeds), "|", **small)
    bars = [test["mean"] - test["low"], test["high"] - test["mean"]]
    axes.errorbar(test["mean"], [row - 0.13], xerr=[bar.fillna(0) for bar in bars], **style)
