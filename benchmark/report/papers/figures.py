"""The papers' figures of one study: which belong to it, and each drawn panel by panel."""

import math
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from benchmark.papers.marks import OURS, PUBLISHED, FigureMarks, Mark
from benchmark.papers.numbers import BATCH_SIZE, Figure, Panel, TestSet
from benchmark.papers.paper import all_figures, cite, cite_statement
from benchmark.papers.verdicts import CLAIM_VERDICTS
from benchmark.papers.vocabulary import load_vocabulary
from benchmark.report.drawing import (
    DOUBLE,
    FAINT,
    INK,
    SERIES,
    SINGLE,
    Drawing,
    legend_below,
    line,
    new_figure,
    plain,
    styled,
)
from benchmark.report.inputs import Inputs, records
from benchmark.report.labels import confidence, loss_label, metric_label
from benchmark.report.numbers import count, words_of
from benchmark.report.records import Group, Part
from benchmark.report.table import NothingToShow
from benchmark.study import Study

Claims = Mapping[str, tuple[str, str]]
MARKS = ["panel", "series", "side", "x", "value", "low", "high", "n"]
TITLE = 30  # characters of a line above a panel
_WORDS = {
    "sweep": "test score at the last epoch, {mean}",
    "gain": "gain in percent of the score without the added term, {mean}",
    "convergence": "test score after each evaluated epoch, mean over seeds, "
    "band of one standard deviation",
    "effect": "difference in percentage points, paired by seed, {mean}",
}
_LEVELS = "viridis"  # ordered colours for ordered batch sizes; its yellow end is left out
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
Axes = Any


def paper_figures(inputs: Inputs) -> Iterator[Part]:
    """Yield the papers' figures that the study has, then its sweeps on the embedded data."""
    study, verdicts = inputs.study, claims_here(inputs.claims)
    marks = {each.figure: each for each in inputs.printed.figures}
    for figure in all_figures():
        if figure.name in marks:
            make = partial(draw, figure, marks[figure.name], study, verdicts)
            group: Group = "paper" if figure.source else "sweep"
            yield Part(figure.name, title_of(figure), group, make)


def title_of(figure: Figure) -> str:
    """Return the title of a paper's figure: "ROADMAP, figure 4: ROADMAP's hyperparameters"."""
    if not figure.source:
        return figure.title
    place = cite(figure.source, figure.name.removeprefix(f"{figure.source}_"))
    return f"{place}: {figure.title}"


def claims_here(claims: pd.DataFrame) -> Claims:
    """Return {name of a claim: (where the paper says it, whether it holds here)}."""
    return {
        row.claim: (cite_statement(row.paper, row.stated_in), row.verdict)
        for row in records(claims)
        if row.reading == "here"
    }


def draw(figure: Figure, marks: FigureMarks, study: Study, verdicts: Claims) -> Drawing:
    """Return the figure; a panel without runs says so. Raise NothingToShow when that holds for all.

    ``verdicts`` are those of the claims that a panel names, which stand above it.
    """
    if not any(mark.side == OURS for mark in marks.marks):
        raise NothingToShow(_reason(figure, marks.settings, study))
    columns = min(3, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    with styled():
        width = DOUBLE if columns > 1 else SINGLE + 1.2
        drawing, grid = new_figure(width, 2.4 * rows + 0.6, rows, columns)
        for number, (axes, panel) in enumerate(zip(grid.flat, figure.panels, strict=False)):
            here = [mark for mark in marks.marks if mark.panel == number]
            DRAWERS[figure.kind](axes, Drawn(panel, here, study))
            axes.set_title("\n".join([panel.title, *_judged(panel, verdicts)]), loc="left")
            if not any(mark.side == OURS for mark in here):
                where = {"transform": axes.transAxes, "ha": "center", "va": "center"}
                axes.text(0.5, 0.5, "not run", color=FAINT, **where)
        for axes in grid.flat[len(figure.panels) :]:
            axes.remove()
        # Published values end the legend in no colour of their own: they stand beside every series.
        legend_below(drawing, columns=4 if columns > 1 else 2, last=(PUBLISHED, published_key()))
    data = pd.DataFrame([_row(mark, figure, study) for mark in marks.marks], columns=MARKS)
    title, ours = title_of(figure), data[data["side"] == OURS]
    alt = _alt(title, ours, figure)
    return Drawing(title, _caption(figure, data, study), alt, drawing, data)


def _row(mark: Mark, figure: Figure, study: Study) -> dict[str, Any]:
    panel = figure.panels[mark.panel]
    series = Drawn(panel, [], study).series(mark)
    return {**vars(mark), "panel": panel.title, "series": series}


def _judged(panel: Panel, verdicts: Claims) -> list[str]:
    """Return the lines above a panel: where papers claim something of it, and whether it holds.

    Several claims of one place share a line: "ROADMAP, figure 4b: 1 supported, 1 inconclusive".
    """
    found: dict[str, list[str]] = {}
    for name in panel.claims:
        if name in verdicts:
            where, verdict = verdicts[name]
            found.setdefault(where, []).append(verdict)
    lines = []
    for where, words in found.items():
        counted = [(words_of(word), words.count(word)) for word in CLAIM_VERDICTS if word in words]
        text = ", ".join(f"{number} {word}" if len(words) > 1 else word for word, number in counted)
        lines += textwrap.wrap(f"{where}: {text}", TITLE)
    return lines


def _reason(figure: Figure, settings: int, study: Study) -> str:
    loss = loss_label(figure.panels[0].loss, study)
    names = [each.dataset for panel in figure.panels for each in panel.test_sets]
    where = ", ".join(dict.fromkeys(names))
    if settings < 2:
        return f"the study has no runs of {loss} that vary what this figure shows on {where}"
    needed = count(settings, "setting")
    return f"no run of {loss} on {where} has finished yet, of {needed} that the figure needs"


def _caption(figure: Figure, data: pd.DataFrame, study: Study) -> str:
    mean = f"mean over seeds with its {confidence(study)} t interval"
    words = _WORDS[figure.kind].format(mean=mean)
    text = f"{words[0].upper()}{words[1:]}."
    if (data["side"] == PUBLISHED).any():
        text += " Open marks and dotted lines are published values."
    if any(panel.claims for panel in figure.panels):
        text += " Above each panel: what papers say about it, and whether that is so here."
    facts = {(panel.backbone, panel.batch_size) for panel in figure.panels}
    if len(facts) == 1:
        backbone, size = facts.pop()
        text += f" Backbone {backbone}" + (f", batch size {size}." if size else ".")
    return text


def _alt(title: str, ours: pd.DataFrame, figure: Figure) -> str:
    metric = metric_label(figure.panels[0].metric)
    listed = "; ".join(
        f"{series} in panel '{panel}' from {part['value'].min():.1f} to {part['value'].max():.1f}"
        for (panel, series), part in list(ours.groupby(["panel", "series"], sort=False))[:6]
    )
    return f"{title}. {metric}: {listed}."


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
