"""The table and the figure of the decomposability gap."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from benchmark.analyses.analysis import cells, numeric
from benchmark.report.drawing import DOUBLE, FAINT, Drawing, legend_below, line, new_figure, styled
from benchmark.report.labels import loss_name
from benchmark.report.panels import Series, batch_axis, by_batch_size
from benchmark.report.table import Table, TableCell, grouped, text_column
from benchmark.stats.intervals import t_interval

TITLE = "Decomposability gap"
PLAIN, CALIBRATED = "sup_ap", "roadmap"
LOSSES = (PLAIN, CALIBRATED)
MEASURED = "measured in batches of"
_BOUNDS = {"own_gap": "gap of the batches", "worst": "Eq. 9, worst order", "plain": "Eq. 8"}


def gap_table(means: pd.DataFrame, bounds: pd.DataFrame, runs: str) -> Table:
    """Return gaps by loss and measuring batch size, and the bounds of perfectly ranked draws."""
    sizes = sorted(means["measured_at"].unique())
    columns = [text_column("loss"), *(numeric("batch size", str(size)) for size in sizes)]
    caption = (
        "Mean AP in batches minus AP over the whole test set, by the size of the batches it is "
        f"measured in; and the gap of the batches themselves beside its bounds ({runs}). AP from 0 "
        "to 1."
    )
    return Table(TITLE, caption, columns, grouped(_rows(means, bounds, sizes)))


def _rows(
    means: pd.DataFrame, bounds: pd.DataFrame, sizes: list[int]
) -> Iterator[tuple[str, list[TableCell]]]:
    for trained_at, part in means.groupby("trained_at"):
        title = f"Gap, trained at batch size {trained_at}"
        gaps = part.groupby(["loss", "measured_at"])["gap"].mean().unstack()
        for loss in LOSSES:
            yield title, cells(loss_name(loss), *gaps.loc[loss])
        yield title, cells("relative decrease", *(1 - gaps.loc[CALIBRATED] / gaps.loc[PLAIN]))
    for name, part in bounds.groupby("loss"):
        title = f"Bounds where all batches are ranked perfectly, {loss_name(str(name))}"
        by_size = part.groupby("measured_at")[[*_BOUNDS]].mean().reindex(sizes)
        for key, words in _BOUNDS.items():
            yield title, cells(words, *by_size[key])


def gap_figure(means: pd.DataFrame, bounds: pd.DataFrame, runs: str) -> Drawing:
    """Return one panel per training batch size (first and last of many) and one of the bounds."""
    sizes = sorted(means["measured_at"].unique())
    trained = sorted(means["trained_at"].unique())
    shown = trained if len(trained) < 3 else [trained[0], trained[-1]]
    bound_means = bounds.groupby(["loss", "measured_at"])[[*_BOUNDS]].mean().reset_index()
    with styled():
        figure, grid = new_figure(DOUBLE, 2.8, 1, len(shown) + 1)
        panels = grid[0, : len(shown)]
        for axes, trained_at in zip(panels, shown, strict=True):
            part = means[means["trained_at"] == trained_at]
            series = [
                Series(loss_name(loss), line(loss), _intervals(part[part["loss"] == loss]))
                for loss in LOSSES
            ]
            by_batch_size(axes, sizes, series, width=0.12)
            axes.set_title(f"Trained at {trained_at}", loc="left")
            axes.set_xlabel(MEASURED)
        grid[0, 0].set_ylabel("decomposability gap (points of AP)")
        top = max(axes.get_ylim()[1] for axes in panels)
        for axes in panels:
            axes.set_ylim(0, top)
        _draw_bounds(grid[0, -1], bound_means, bounds, sizes)
        legend_below(figure, columns=2)
    caption = (
        f"Mean AP in batches minus AP over the whole test set ({runs}); bars: 95% t interval over "
        "seeds. Right: draws whose batches are all ranked perfectly: Eq. 8 (dotted, the same for "
        "both losses), Eq. 9 in its worst order (open marks), and the gap that the batches have "
        "(filled marks)."
    )
    ends = means.groupby(["trained_at", "loss", "measured_at"])["gap"].mean() * 100
    told = [
        f"{loss_name(loss)} trained at {size}: {ends[size, loss, sizes[0]]:.1f} to "
        f"{ends[size, loss, sizes[-1]]:.1f}"
        for size in trained
        for loss in LOSSES
    ]
    alt = (
        f"Gap in points of AP against measuring batch size, from {sizes[0]} to {sizes[-1]}. "
        f"{'; '.join(told)}."
    )
    parts = [means.assign(kind="gap"), bound_means.assign(kind="bounds")]
    return Drawing(TITLE, caption, alt, figure, pd.concat(parts, ignore_index=True))


def _intervals(part: pd.DataFrame) -> pd.DataFrame:
    """Return mean and t interval over seeds of the gap in points, by measuring batch size."""
    rows = []
    for size, gaps in part.groupby("measured_at")["gap"]:
        found = t_interval(100 * gaps)
        rows.append((size, found.mean, found.low, found.high))
    return pd.DataFrame(rows, columns=["batch_size", "mean", "low", "high"])


def _draw_bounds(axes: Any, means: pd.DataFrame, bounds: pd.DataFrame, sizes: list[int]) -> None:
    for loss, offset in zip(LOSSES, (-0.06, 0.06), strict=True):
        part = means[means["loss"] == loss]
        where = [sizes.index(size) + offset for size in part["measured_at"]]
        axes.plot(where, 100 * part["own_gap"], **line(loss))
        axes.plot(where, 100 * part["worst"], **(line(loss) | {"markerfacecolor": "none"}))
    plain = 100 * bounds.groupby("measured_at")["plain"].mean()
    middle = [sizes.index(size) for size in plain.index]
    axes.plot(middle, plain, linestyle=":", color=FAINT)
    if len(plain):
        start = (middle[0], plain.iloc[0])
        axes.annotate("Eq. 8", start, xytext=(0, 4), textcoords="offset points")
    axes.set_title("Bounds", loc="left")
    batch_axis(axes, sizes)
    axes.set_xlabel(MEASURED)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylabel("points of AP")
