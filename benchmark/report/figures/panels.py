"""Panels of figures: a place of a table each, with the losses in their styles."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from benchmark.report.drawing import Series, by_batch_size, line, new_figure
from benchmark.report.labels import dataset_label
from benchmark.report.study_results import StudyResults, rows_of

PANELS = 6  # in one figure; more are left to the CSV, and the caption says so
ENDS = {"ci_low": "low", "ci_high": "high"}
WIDTHS = {1: 3, 2: 2, 3: 3}  # panels in a row by number of metrics, for metrics in columns


def panel_keys(
    inputs: StudyResults, table: pd.DataFrame, by: Sequence[str]
) -> list[tuple[Any, ...]]:
    """Return the places of a table by these columns, in the order of their panels."""
    columns = [name for name in by if name != "metric"]
    keys = sorted(table[columns].drop_duplicates().itertuples(index=False, name=None))
    if "metric" in by:
        keys = [(*key, metric) for key in keys for metric in inputs.metrics(table["metric"])]
    return keys


def panel_grid(
    inputs: StudyResults,
    table: pd.DataFrame,
    by: Sequence[str],
    across: int,
    size: tuple[float, float],
    extra: float,
    **options: Any,
) -> tuple[Any, list[Any], list[tuple[Any, ...]], str]:
    """Return a figure; (axes, key, rows) of its panels; the keys of all; words on those left out.

    A panel is a place of ``table``: values of the columns ``by``, sorted; of "metric", the last,
    the study's in its order. ``across``: most panels of a row; ``size``: width of the figure and
    height of a row in inches; ``extra``: height of the legend.
    """
    keys = panel_keys(inputs, table, by)
    drawn = keys[:PANELS]
    rest = len(keys) - PANELS
    across = min(across, len(keys))
    rows = -(-len(drawn) // across)
    figure, grid = new_figure(size[0], size[1] * rows + extra, rows, across, **options)
    for axes in grid.flat[len(drawn) :]:
        axes.remove()
    panels = [
        (axes, key, rows_of(table, **dict(zip(by, key, strict=True))))
        for axes, key in zip(grid.flat, drawn, strict=False)
    ]
    left = f" {rest} further panels are only in the CSV file." if rest > 0 else ""
    return figure, panels, keys, left


def panel_title(where: Sequence[str], several: bool, *more: str) -> str:
    """Return a panel's title; ``where`` (dataset, setting, split) is named if there are several."""
    lines = []
    if several:
        place = dataset_label(*where).replace("~", " ~")  # a long setting breaks before its options
        lines += textwrap.wrap(place, 32, break_long_words=False)
    if more:
        lines.append(" · ".join(more))
    return "\n".join(lines)


def loss_line(inputs: StudyResults, loss: str, **other: Any) -> dict[str, Any]:
    """Return how to draw a loss of a study: its name for the legend and its style, with others."""
    return {"label": inputs.label(loss), **line(loss, inputs.base_losses.get(loss)), **other}


def draw_losses(
    inputs: StudyResults,
    axes: Any,
    sizes: Sequence[int],
    table: pd.DataFrame,
    losses: Iterable[str],
    width: float = 0.5,
) -> None:
    """Draw the rows of each loss over the batch sizes, in its style."""
    series = []
    for loss in losses:
        style = loss_line(inputs, loss)
        series.append(Series(style.pop("label"), style, rows_of(table, loss=loss)))
    by_batch_size(axes, sizes, series, width)


def in_percent(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with mean, low and high in percent."""
    return table.assign(**{name: 100 * table[name] for name in ("mean", "low", "high")})


def span(values: pd.Series) -> str:
    """Return "81.2 to 85.9" in percent, for alternative texts."""
    return f"{100 * values.min():.1f} to {100 * values.max():.1f}"
