"""How each kind of panel is drawn. Every function draws into axes and returns the marks behind them."""

from __future__ import annotations

import math
import re
from typing import Any

import pandas as pd

from benchmark.report.figures.papers.arrangement import Panel, Place
from benchmark.report.figures.papers.points import Points, in_words, published_points, x_of
from benchmark.report.figures.style import INK, line
from benchmark.report.tables.labels import loss_label, metric_label
from benchmark.report.tables.papers.arrangement import names

# Series are data sets here, not losses, so they must not borrow a loss's colour.
_PLACES = (
    ("#2F77A8", "o", "-"),
    ("#A0436B", "s", "--"),
    ("#4C7A34", "^", "-."),
    ("#8561A8", "D", ":"),
)
_LEVELS = "viridis"  # ordered colours for ordered batch sizes; its yellow end is left out
PUBLISHED = "published"
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def sweep(
    axes: Any, panel: Panel, points: Points, paper: str, handles: dict[str, Any]
) -> list[dict]:
    """Draws the score against a hyperparameter or the batch size, one line per place."""
    marks = []
    alone = len(panel.series) == 1
    spread = _spread(panel)
    for number, (place, (colour, marker, dash)) in enumerate(
        zip(panel.series, _PLACES, strict=False)
    ):
        label = loss_label(panel.loss, points.study) if alone else place_name(place)
        style = {"color": colour, "marker": marker, "linestyle": dash, "markerfacecolor": colour}
        style = line(panel.loss) if alone else style
        style = {**style, "linestyle": "none"} if in_words(panel) else style
        found = points.by_x(panel, place, panel.loss, x_of(panel))
        if found:
            moved = [{**mark, "x": mark["x"] * spread[number]} for mark in found]
            handles.setdefault(label, _errorbar(axes, moved, style))
        printed = published_points(panel, place, paper, panel.loss)
        _published(axes, printed, style["color"], style["marker"], handles)
        marks += _kept(panel, label, found, printed)
        if panel.baseline:
            marks += _baseline(axes, panel, place, points, paper, handles)
    if in_words(panel):
        axes.set_xticks(
            range(len(panel.options)), [words.replace(" ", "\n", 1) for _, words in panel.options]
        )
        axes.set_xlim(-0.5, len(panel.options) - 0.5)
    elif panel.x == "batch_size" or panel.scale == "log":
        _log_axis(axes, {mark["x"] for mark in marks if mark["x"] is not None})
    axes.set_xlabel("batch size (images)" if panel.x == "batch_size" else panel.label)
    axes.set_ylabel(f"{metric_label(panel.metric)} (%)")
    return marks


def gain(
    axes: Any, panel: Panel, points: Points, paper: str, handles: dict[str, Any]
) -> list[dict]:
    """Draws the gain of one loss over another in percent of the latter, against batch size."""
    axes.axhline(0, color=INK, linewidth=0.7)
    place, style = panel.series[0], line(panel.loss)
    found = _gains(panel, points, place)
    label = f"{loss_label(panel.loss, points.study)} over {loss_label(panel.loss_against, points.study)}"
    if found:
        handles.setdefault(label, _errorbar(axes, found, style))
    printed = published_points(panel, place, paper, panel.loss)
    _published(axes, printed, style["color"], style["marker"], handles)
    marks = _kept(panel, label, found, printed)
    _log_axis(axes, {mark["x"] for mark in marks})
    axes.set_xlabel("batch size (images)")
    axes.set_ylabel(f"gain in {metric_label(panel.metric)} (%)")
    return marks


def convergence(
    axes: Any, panel: Panel, points: Points, paper: str, handles: dict[str, Any]
) -> list[dict]:
    """Draws the test score against the epoch, one curve per batch size."""
    from matplotlib import colormaps

    place = panel.series[0]
    cells = {
        cell.batch_size: cell
        for cell in points.cells(panel, place, panel.loss)
        if not cell.variant.own
    }
    curves = {
        size: points.values(cell, place, panel.metric, "curve")
        for size, cell in sorted(cells.items())
    }
    curves = {size: rows for size, rows in curves.items() if len(rows)}
    marks = []
    for number, (size, rows) in enumerate(curves.items()):
        colour = colormaps[_LEVELS](0.85 * number / max(1, len(curves) - 1))
        by_epoch = rows.groupby("epoch")["value"].agg(["mean", "std", "count"])
        low, high = (
            100 * (by_epoch["mean"] + sign * by_epoch["std"].fillna(0)) for sign in (-1, 1)
        )
        axes.fill_between(by_epoch.index, low, high, color=colour, alpha=0.15, linewidth=0)
        marker = "osD^vP<>"[number % 8]
        every = max(1, len(by_epoch) // 8)
        (handle,) = axes.plot(
            by_epoch.index, 100 * by_epoch["mean"], color=colour, marker=marker, markevery=every
        )
        handles.setdefault(f"batch size {size}", handle)
        found = [
            {
                "x": epoch,
                "value": 100 * row["mean"],
                "low": low[epoch],
                "high": high[epoch],
                "n": int(row["count"]),
            }
            for epoch, row in by_epoch.iterrows()
        ]
        marks += _kept(panel, f"batch size {size}", found, [])
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("epoch")
    axes.set_ylabel(f"{metric_label(panel.metric)} (%)")
    return marks


def effect(
    axes: Any, panel: Panel, points: Points, paper: str, handles: dict[str, Any]
) -> list[dict]:
    """Draws the paired difference of two settings, one mark per place."""
    axes.axhline(0, color=INK, linewidth=0.7)
    marks = []
    for position, place in enumerate(panel.series):
        found = points.effect(panel, place)
        if found:
            _errorbar(axes, [{"x": position, **found}], {**line(panel.loss), "linestyle": "none"})
            marks += _kept(panel, place_name(place), [{"x": position, **found}], [])
    labels = [place_name(place).replace(", ", "\n") for place in panel.series]
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlim(-0.5, len(labels) - 0.5)
    axes.set_ylabel(f"difference in {metric_label(panel.metric)} (points)")
    return marks


def place_name(place: Place) -> str:
    """Returns a place for a legend: "Revisited Oxford, medium"."""
    dataset, _, level = place.split.rpartition("_")
    if dataset:
        return f"{names()['dataset'].get(dataset, dataset)}, {level}"
    name = names()["dataset"].get(place.dataset, place.dataset)
    return f"{name}, {place.split}" if place.split else name


def _errorbar(axes: Any, found: list[dict], style: dict) -> Any:
    table = pd.DataFrame(found)
    bars = [
        (table["value"] - table["low"].astype(float)).fillna(0),
        (table["high"].astype(float) - table["value"]).fillna(0),
    ]
    return axes.errorbar(table["x"], table["value"], yerr=bars, **style)


def _published(
    axes: Any, printed: list[dict], colour: str, marker: str, handles: dict[str, Any]
) -> None:
    if printed:
        (handle,) = axes.plot(
            [each["x"] for each in printed],
            [each["value"] for each in printed],
            color=colour,
            marker=marker,
            linestyle="none",
            markersize=6.5,
            markerfacecolor="none",
            markeredgewidth=0.9,
        )
        handles.setdefault(PUBLISHED, handle)


def _baseline(
    axes: Any, panel: Panel, place: Place, points: Points, paper: str, handles: dict[str, Any]
) -> list[dict]:
    """Draws the plain runs of the baseline as a level line, and its published value as a thin one."""
    style = line(panel.baseline)
    label = loss_label(panel.baseline, points.study)
    plain = [cell for cell in points.cells(panel, place, panel.baseline) if not cell.variant.own]
    found = []
    for cell in plain[:1]:
        rows = points.values(cell, place, panel.metric)
        if len(rows):
            summary = points.summary(100 * rows["value"])
            handle = axes.axhline(
                summary["value"], color=style["color"], linestyle=style["linestyle"]
            )
            handles.setdefault(f"{label} alone", handle)
            found.append({"x": None, **summary})
    printed = [
        {**each, "x": None} for each in published_points(panel, place, paper, panel.baseline)
    ]
    for each in printed:
        handle = axes.axhline(each["value"], color=style["color"], linewidth=0.8, linestyle=":")
        handles.setdefault(f"{label} alone, published", handle)
    return _kept(panel, label, found, printed)


def _gains(panel: Panel, points: Points, place: Place) -> list[dict]:
    found = []
    for cell in points.cells(panel, place, panel.loss, any_size=True):
        sides = []
        for loss in (panel.loss, panel.loss_against):
            twin = [
                each
                for each in points.cells(panel, place, loss, any_size=True)
                if each.batch_size == cell.batch_size
                and each.setting == cell.setting
                and not each.variant.own
            ]
            sides.append(
                points.values(twin[0], place, panel.metric).set_index("seed")["value"]
                if twin
                else None
            )
        if cell.variant.own or any(side is None or side.empty for side in sides):
            continue
        ratio = (100 * (sides[0] - sides[1]) / sides[1].where(sides[1] > 0)).dropna()
        if len(ratio):
            found.append({"x": cell.batch_size, **points.summary(ratio)})
    return sorted(found, key=lambda mark: mark["x"])


def published_key() -> Any:
    """Returns the legend's key of published values: an open mark without the colour of any series."""
    from matplotlib.lines import Line2D

    return Line2D(
        [], [], color=INK, marker="o", linestyle="none", markersize=6.5, markerfacecolor="none"
    )


def _spread(panel: Panel) -> list[float]:
    """Returns factors that keep the series apart on a logarithmic axis; none on a linear one."""
    count = len(panel.series)
    apart = 1.04 if panel.x == "batch_size" or panel.scale == "log" else 1.0
    return [apart ** (number - (count - 1) / 2) for number in range(count)]


def _log_axis(axes: Any, found: set[float]) -> None:
    """Gives an axis a logarithmic scale with ticks at the values themselves, as far as their labels have room.

    A value of 0 stands one step left of the least other one.
    """
    values = sorted(value for value in found if value > 0)
    if not values:
        return
    zero = 0 in found
    axes.set_xscale("symlog", linthresh=values[0]) if zero else axes.set_xscale("log")
    width = max(math.log(values[-1] / values[0]), 0.1)
    shown: list[float] = []
    for value in values:
        # of the axis: 4% for a character, half of each of two labels side by side, and 2% between them
        if not shown or math.log(value / shown[-1]) >= width * (
            0.02 * len(_tick(value) + _tick(shown[-1])) + 0.02
        ):
            shown.append(value)
    axes.set_xticks([0] * zero + shown, ["0"] * zero + [_tick(value) for value in shown])
    axes.minorticks_off()
    margin = (values[-1] / values[0]) ** 0.08 if len(values) > 1 else 1.5
    axes.set_xlim(-0.3 * values[0] if zero else values[0] / margin, values[-1] * margin)


def _tick(value: float) -> str:
    """Returns a number as it is written, and powers of ten from 1000 on as 10 with an exponent, to save room."""
    text = f"{value:g}"
    return f"10{str(len(text) - 1).translate(_RAISED)}" if re.fullmatch(r"10{3,}", text) else text


def _kept(panel: Panel, series: str, ours: list[dict], printed: list[dict]) -> list[dict]:
    head = {"panel": panel.title, "series": series}
    return [{**head, "side": "ours", **mark} for mark in ours] + [
        {**head, "side": PUBLISHED, **mark} for mark in printed
    ]


DRAWERS = {"sweep": sweep, "gain": gain, "convergence": convergence, "effect": effect}
