"""The table and the figure of the decomposability gap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmark.analyses.shown import number, numeric
from benchmark.report.figures.drawing import Drawing, legend_below, new_figure
from benchmark.report.figures.panels import batch_axis, dodge
from benchmark.report.figures.style import DOUBLE, FAINT, line, styled
from benchmark.report.tables.table import Cell, Section, Table, text_column
from benchmark.stats.intervals import t_interval

PLAIN, CALIBRATED = "sup_ap", "roadmap"
NAMES = {PLAIN: "SupAP", CALIBRATED: "ROADMAP"}


def gap_table(means: pd.DataFrame, bounds: pd.DataFrame, runs: str) -> Table:
    """Returns gaps by loss and measuring batch size, and bounds; ``bounds`` holds perfectly ranked draws only."""
    sizes = sorted(means["measured_at"].unique())
    columns = [text_column("loss"), *(numeric("batch size", str(size)) for size in sizes)]
    sections = []
    for trained_at, part in means.groupby("trained_at"):
        gaps = part.groupby(["loss", "measured_at"])["gap"].mean().unstack()
        rows = [[Cell(NAMES[loss]), *map(number, gaps.loc[loss])] for loss in NAMES]
        rows.append(
            [Cell("relative decrease"), *map(number, 1 - gaps.loc[CALIBRATED] / gaps.loc[PLAIN])]
        )
        sections.append(Section(f"Gap, trained at batch size {trained_at}", rows))
    keys = {"own_gap": "gap of the batches", "worst": "Eq. 9, worst order", "plain": "Eq. 8"}
    for loss, part in bounds.groupby("loss"):
        by_size = part.groupby("measured_at")[list(keys)].mean().reindex(sizes)
        rows = [
            [
                Cell(words),
                *(number(value) if np.isfinite(value) else Cell("") for value in by_size[key]),
            ]
            for key, words in keys.items()
        ]
        sections.append(
            Section(f"Bounds where all batches are ranked perfectly, {NAMES[loss]}", rows)
        )
    caption = (
        "Mean AP in batches minus AP over the whole test set, by the size of the batches it is measured in; and the "
        f"gap of the batches themselves beside its bounds ({runs}). AP from 0 to 1."
    )
    return Table("Decomposability gap", caption, columns, sections)


def gap_figure(means: pd.DataFrame, bounds: pd.DataFrame, runs: str) -> Drawing:
    """Returns one panel per training batch size (the first and the last of many) and one with the bounds."""
    sizes = sorted(means["measured_at"].unique())
    trained = sorted(means["trained_at"].unique())
    shown = trained if len(trained) < 3 else [trained[0], trained[-1]]
    handles: dict[str, Any] = {}
    with styled():
        figure, grid = new_figure(DOUBLE, 2.8, 1, len(shown) + 1)
        for axes, trained_at in zip(grid[0], shown, strict=False):
            for (loss, words), offset in zip(NAMES.items(), dodge(2, 0.12), strict=True):
                part = means[(means["trained_at"] == trained_at) & (means["loss"] == loss)]
                summaries = [
                    t_interval(100 * part[part["measured_at"] == size]["gap"]) for size in sizes
                ]
                bars = np.nan_to_num([item.high - item.mean for item in summaries])
                where = np.arange(len(sizes)) + offset
                handles[words] = axes.errorbar(
                    where, [item.mean for item in summaries], yerr=bars, **line(loss)
                )
            axes.set_title(f"Trained at {trained_at}", loc="left")
            batch_axis(axes, sizes)
            axes.set_xlabel("measured in batches of")
            axes.set_ylim(bottom=0)
        grid[0, 0].set_ylabel("decomposability gap (points of AP)")
        top = max(axes.get_ylim()[1] for axes in grid[0, : len(shown)])
        for axes in grid[0, : len(shown)]:
            axes.set_ylim(0, top)
        _draw_bounds(grid[0, -1], bounds, sizes)
        legend_below(figure, handles, columns=2)
    caption = (
        f"Mean AP in batches minus AP over the whole test set ({runs}); bars: 95% t interval over seeds. Right: draws "
        "whose batches are all ranked perfectly: Eq. 8 (dotted, the same for both losses), Eq. 9 in its worst order "
        "(open marks), and the gap that the batches have (filled marks)."
    )
    ends = means.groupby(["trained_at", "loss", "measured_at"])["gap"].mean() * 100
    listing = [
        f"{NAMES[loss]} trained at {size}: {ends[size, loss, sizes[0]]:.1f} to {ends[size, loss, sizes[-1]]:.1f}"
        for size in trained
        for loss in NAMES
    ]
    alt = f"Gap in points of AP against measuring batch size, from {sizes[0]} to {sizes[-1]}. {'; '.join(listing)}."
    data = pd.concat(
        [means.assign(kind="gap"), _bound_means(bounds).assign(kind="bounds")], ignore_index=True
    )
    return Drawing("Decomposability gap", caption, alt, figure, data)


def _bound_means(bounds: pd.DataFrame) -> pd.DataFrame:
    return (
        bounds.groupby(["loss", "measured_at"])[["own_gap", "worst", "plain"]].mean().reset_index()
    )


def _draw_bounds(axes: Any, bounds: pd.DataFrame, sizes: list[int]) -> None:
    means = _bound_means(bounds)
    for loss, offset in zip(NAMES, (-0.06, 0.06), strict=True):
        part = means[means["loss"] == loss]
        where = [sizes.index(size) + offset for size in part["measured_at"]]
        look = line(loss)
        axes.plot(where, 100 * part["own_gap"], **look)
        axes.plot(where, 100 * part["worst"], **(look | {"markerfacecolor": "none"}))
    plain = bounds.groupby("measured_at")["plain"].mean() if len(bounds) else pd.Series(dtype=float)
    axes.plot([sizes.index(size) for size in plain.index], 100 * plain, linestyle=":", color=FAINT)
    if len(plain):
        axes.annotate(
            "Eq. 8",
            (sizes.index(plain.index[0]), 100 * plain.iloc[0]),
            xytext=(0, 4),
            textcoords="offset points",
        )
    axes.set_title("Bounds", loc="left")
    batch_axis(axes, sizes)
    axes.set_xlabel("measured in batches of")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylabel("points of AP")
