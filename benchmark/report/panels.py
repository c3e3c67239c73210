"""Small multiples: the panels of a figure, and series that stand beside each other in one."""

import textwrap
from collections.abc import Hashable, Iterable, Sequence, Sized
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from benchmark.report.drawing import line, new_figure
from benchmark.report.inputs import Inputs
from benchmark.report.labels import dataset_label, loss_label

PANELS = 6  # in one figure; more are left to the CSV, and the caption says so
Panel = TypeVar("Panel", bound=Hashable)


class Series(NamedTuple):
    """One line of a panel: its name, how it is drawn, and its points.

    ``points`` has the columns batch_size, mean, low and high; NaN bounds draw no bar.
    """

    label: str
    style: dict[str, Any]
    points: pd.DataFrame


def panel_grid(
    panels: Sequence[Panel], columns: int, size: tuple[float, float], extra: float, **options: Any
) -> tuple[Any, list[tuple[Any, Panel]]]:
    """Return a figure and (axes, panel) of its first ``PANELS`` panels, row by row.

    ``size`` is the width of the figure and the height of a row in inches, ``extra`` the height
    that the legend takes; ``options`` are those of matplotlib's ``subplots``.
    """
    drawn = panels[:PANELS]
    rows = -(-len(drawn) // columns)
    figure, grid = new_figure(size[0], size[1] * rows + extra, rows, columns, **options)
    for axes in grid.flat[len(drawn) :]:
        axes.remove()
    return figure, list(zip(grid.flat, drawn, strict=False))


def left_out(panels: Sized, drawn: int = PANELS, what: str = "panels") -> str:
    """Return the sentence on panels that are not drawn; empty when all are."""
    rest = len(panels) - drawn
    return f" {rest} further {what} are only in the CSV file." if rest > 0 else ""


def rows_of(table: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """Return the rows of a table whose columns have the given values."""
    keep = pd.Series(True, index=table.index)
    for column, value in values.items():
        keep &= table[column] == value
    return table[keep]


def keys_of(table: pd.DataFrame, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the distinct values of several columns, sorted."""
    return sorted(table[[*columns]].drop_duplicates().itertuples(index=False, name=None))


def errorbars(axes: Any, where: Any, points: pd.DataFrame, style: dict[str, Any], **more: Any):
    """Draw means with bars from ``low`` to ``high`` at the positions ``where``."""
    bars = [points["mean"] - points["low"], points["high"] - points["mean"]]
    bars = [bar.astype(float).fillna(0) for bar in bars]
    return axes.errorbar(where, points["mean"], yerr=bars, **style, **more)


def by_batch_size(
    axes: Any, sizes: Sequence[int], series: Iterable[Series], width: float = 0.5
) -> None:
    """Draw every series over the batch sizes, moved sideways so that none covers another."""
    series = list(series)
    for (label, style, points), offset in zip(series, dodge(len(series), width), strict=True):
        if len(points):
            ordered = points.sort_values("batch_size")
            where = [sizes.index(size) + offset for size in ordered["batch_size"]]
            errorbars(axes, where, ordered, style, label=label)
    batch_axis(axes, sizes)


def loss_series(inputs: Inputs, losses: Sequence[str], table: pd.DataFrame) -> list[Series]:
    """Return a series of the rows of ``table`` for each loss, in its name and style."""
    study, bases = inputs.study, inputs.base_losses
    return [
        Series(loss_label(loss, study), line(loss, bases.get(loss)), rows_of(table, loss=loss))
        for loss in losses
    ]


def dodge(count: int, width: float = 0.5) -> np.ndarray:
    """Return horizontal offsets (count,) that keep marks at one position apart."""
    return np.zeros(1) if count < 2 else np.linspace(-width / 2, width / 2, count)


def batch_axis(axes: Any, sizes: Sequence[int]) -> None:
    """Give equally spaced ticks to batch sizes, which are categories here."""
    axes.set_xticks(range(len(sizes)), [str(size) for size in sizes])
    axes.set_xlim(-0.5, len(sizes) - 0.5)
    axes.grid(axis="x", visible=False)
    axes.set_xlabel("batch size (images)")


def panel_title(where: tuple[str, ...], several: bool, *more: str) -> str:
    """Return a panel's title; ``where`` (dataset, setting, split) is named if there are several."""
    named = textwrap.wrap(dataset_label(*where), 32, break_long_words=False) if several else []
    return "\n".join([*named, *([" · ".join(more)] if more else [])])


def span(values: pd.Series) -> str:
    """Return "81.2 to 85.9" in percent, for alternative texts."""
    return f"{100 * values.min():.1f} to {100 * values.max():.1f}"
