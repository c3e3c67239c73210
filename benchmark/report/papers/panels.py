"""How each kind of panel is drawn. Every function draws the marks of one panel into axes."""

import math
import re
from dataclasses import dataclass
from typing import Any

from benchmark.papers.arrangements import BATCH_SIZE, Panel, TestSet
from benchmark.papers.printed.figures import OURS, PUBLISHED, Mark
from benchmark.papers.vocabulary import load_vocabulary
from benchmark.report.drawing import INK, SERIES, line, plain
from benchmark.report.labels import loss_label, metric_label
from benchmark.study import Study

_LEVELS = "viridis"  # ordered colours for ordered batch sizes; its yellow end is left out
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
Axes = Any


@dataclass(frozen=True)
class Drawn:
    """A panel with its marks, to be drawn for one study."""

    panel: Panel
    marks: list[Mark]
    study: Study

    def of(self, test_set: int, loss: str, side: str) -> list[Mark]:
        """Return the marks of one line."""
        key = (test_set, loss, side)
        return [each for each in self.marks if (each.test_set, each.loss, each.side) == key]

    def series(self, mark: Mark) -> str:
        """Return the name of the line that a mark belongs to, for a legend."""
        panel = self.panel
        loss = loss_label(panel.loss, self.study)
        if mark.batch_size is not None:
            return f"batch size {mark.batch_size}"
        if mark.loss != panel.loss:
            return loss_label(mark.loss, self.study)
        if panel.loss_against:
            return f"{loss} over {loss_label(panel.loss_against, self.study)}"
        alone = len(panel.test_sets) == 1 and not panel.parameter
        return loss if alone else name_of_test_set(panel.test_sets[mark.test_set])


def sweep(axes: Axes, drawn: Drawn) -> None:
    """Draw the score against a hyperparameter or the batch size, one line per test set."""
    panel, alone = drawn.panel, len(drawn.panel.test_sets) == 1
    spread, positions = _spread(panel), []
    for number, (_, each) in enumerate(zip(panel.test_sets, SERIES, strict=False)):
        style = line(panel.loss if alone else each)
        style = {**style, "linestyle": "none"} if panel.words else style
        ours = drawn.of(number, panel.loss, OURS)
        if ours:
            style = {**style, "label": drawn.series(ours[0])}
            _errorbar(axes, ours, style, factor=spread[number])
        printed = drawn.of(number, panel.loss, PUBLISHED)
        _published(axes, printed, style["color"], style["marker"])
        positions += [mark.x for mark in (*ours, *printed) if mark.x is not None]
        if panel.baseline:
            _baseline(axes, drawn, number)
    if panel.words:
        labels = [plain(words).replace(" ", "\n", 1) for words in panel.words.values()]
        axes.set_xticks(range(len(labels)), labels)
        axes.set_xlim(-0.5, len(labels) - 0.5)
    elif panel.x == BATCH_SIZE or panel.scale == "log":
        _log_axis(axes, set(positions))
    axes.set_xlabel("batch size (images)" if panel.x == BATCH_SIZE else panel.label)
    axes.set_ylabel(f"{metric_label(panel.metric)} (%)")


def gain(axes: Axes, drawn: Drawn) -> None:
    """Draw the gain of one loss over another in percent of the latter, against batch size."""
    axes.axhline(0, color=INK, linewidth=0.7)
    panel, style = drawn.panel, line(drawn.panel.loss)
    ours, printed = (drawn.of(0, panel.loss, side) for side in (OURS, PUBLISHED))
    if ours:
        _errorbar(axes, ours, {**style, "label": drawn.series(ours[0])})
    _published(axes, printed, style["color"], style["marker"])
    _log_axis(axes, {mark.x for mark in (*ours, *printed) if mark.x is not None})
    axes.set_xlabel("batch size (images)")
    axes.set_ylabel(f"gain in {metric_label(panel.metric)} (%)")


def convergence(axes: Axes, drawn: Drawn) -> None:
    """Draw the test score against the epoch, one curve per batch size."""
    from matplotlib import colormaps

    sizes = sorted({mark.batch_size for mark in drawn.marks if mark.batch_size is not None})
    for number, size in enumerate(sizes):
        curve = [mark for mark in drawn.marks if mark.batch_size == size]
        epochs = [mark.x for mark in curve]
        colour = colormaps[_LEVELS](0.85 * number / max(1, len(sizes) - 1))
        low, high = ([getattr(mark, end) for mark in curve] for end in ("low", "high"))
        axes.fill_between(epochs, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(
            epochs,
            [mark.value for mark in curve],
            color=colour,
            marker="osD^vP<>"[number % 8],
            markevery=max(1, len(curve) // 8),
            label=drawn.series(curve[0]),
        )
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("epoch")
    axes.set_ylabel(f"{metric_label(drawn.panel.metric)} (%)")


def effect(axes: Axes, drawn: Drawn) -> None:
    """Draw the paired difference of two settings, one mark per test set."""
    axes.axhline(0, color=INK, linewidth=0.7)
    if drawn.marks:
        _errorbar(axes, drawn.marks, {**line(drawn.panel.loss), "linestyle": "none"})
    labels = [plain(name_of_test_set(each)).replace(", ", "\n") for each in drawn.panel.test_sets]
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlim(-0.5, len(labels) - 0.5)
    axes.set_ylabel(f"difference in {metric_label(drawn.panel.metric)} (points)")


def name_of_test_set(test_set: TestSet) -> str:
    """Return a test set for a legend: "Revisited Oxford, medium"."""
    words = load_vocabulary()
    dataset, _, level = test_set.split.rpartition("_")
    if dataset:
        return f"{words.name('dataset', dataset)}, {level}"
    name = words.name("dataset", test_set.dataset)
    return f"{name}, {test_set.split}" if test_set.split else name


def _errorbar(axes: Axes, marks: list[Mark], style: dict[str, Any], factor: float = 1.0) -> Any:
    bars = [
        [0.0 if mark.low is None else mark.value - mark.low for mark in marks],
        [0.0 if mark.high is None else mark.high - mark.value for mark in marks],
    ]
    x = [mark.x * factor for mark in marks if mark.x is not None]
    return axes.errorbar(x, [mark.value for mark in marks], yerr=bars, **style)


def _published(axes: Axes, printed: list[Mark], colour: str, marker: str) -> None:
    if printed:
        axes.plot(
            [mark.x for mark in printed],
            [mark.value for mark in printed],
            color=colour,
            marker=marker,
            linestyle="none",
            markersize=6.5,
            markerfacecolor="none",
            markeredgewidth=0.9,
            label=PUBLISHED,
        )


def _baseline(axes: Axes, drawn: Drawn, test_set: int) -> None:
    """Draw the score of the baseline as a level line, and its published value as a thin one."""
    loss = drawn.panel.baseline
    style, label = line(loss), loss_label(loss, drawn.study)
    for mark in drawn.of(test_set, loss, OURS):
        level = {"color": style["color"], "linestyle": style["linestyle"]}
        axes.axhline(mark.value, **level, label=f"{label} alone")
    for mark in drawn.of(test_set, loss, PUBLISHED):
        level = {"color": style["color"], "linestyle": ":", "linewidth": 0.8}
        axes.axhline(mark.value, **level, label=f"{label} alone, published")


def published_key() -> Any:
    """Return the legend's key of published values: an open mark in the colour of the text."""
    from matplotlib.lines import Line2D

    return Line2D(
        [], [], color=INK, marker="o", linestyle="none", markersize=6.5, markerfacecolor="none"
    )


def _spread(panel: Panel) -> list[float]:
    """Return factors that keep the series apart on a logarithmic axis; none on a linear one."""
    count = len(panel.test_sets)
    apart = 1.04 if panel.x == BATCH_SIZE or panel.scale == "log" else 1.0
    return [apart ** (number - (count - 1) / 2) for number in range(count)]


def _log_axis(axes: Any, found: set[float]) -> None:
    """Give an axis a logarithmic scale with ticks at the values whose labels have room.

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
        # A character takes 4% of the axis, so half of two labels side by side is 2% a character;
        # 2% more keep them apart.
        room = 0.02 * len(_tick(value) + _tick(shown[-1])) + 0.02 if shown else 0
        if not shown or math.log(value / shown[-1]) >= width * room:
            shown.append(value)
    axes.set_xticks([0] * zero + shown, ["0"] * zero + [_tick(value) for value in shown])
    axes.minorticks_off()
    margin = (values[-1] / values[0]) ** 0.08 if len(values) > 1 else 1.5
    axes.set_xlim(-0.3 * values[0] if zero else values[0] / margin, values[-1] * margin)


def _tick(value: float) -> str:
    """Return a number; powers of ten from 1000 on are 10 with an exponent, to save room."""
    text = f"{value:g}"
    return f"10{str(len(text) - 1).translate(_RAISED)}" if re.fullmatch(r"10{3,}", text) else text


DRAWERS = {"sweep": sweep, "gain": gain, "convergence": convergence, "effect": effect}
