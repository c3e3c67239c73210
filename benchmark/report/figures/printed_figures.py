"""Our marks beside those of papers: their figures and the sweeps, and differences to references."""

import math
import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from benchmark.core.words import count, listed, words_of
from benchmark.published.paper import Papers
from benchmark.published.schema import BATCH_SIZE, Figure, Panel, TestSet
from benchmark.published.vocabulary import load_vocabulary
from benchmark.report.artefacts import PlannedArtefact
from benchmark.report.drawing import (
    BAND,
    COLOURS,
    DOUBLE,
    FAINT,
    GRID,
    INK,
    MOVED,
    SERIES,
    SINGLE,
    Drawing,
    bars,
    legend_below,
    line,
    new_figure,
    plain,
    styled,
)
from benchmark.report.figures import FIGURES
from benchmark.report.labels import metric_label
from benchmark.report.row_types import ClaimRow, VerdictRow
from benchmark.report.study_results import StudyResults, records, rows_of
from benchmark.report.table import TONES, NothingToShow
from benchmark.stats.reproduction import DRIFTED, REPRODUCED
from benchmark.verdicts.explain import rule
from benchmark.verdicts.printed import OURS, PUBLISHED, FigureMarks, Mark
from benchmark.verdicts.verdicts import CLAIM_VERDICTS, FILED, FROZEN, INCONCLUSIVE

NUMBER = r"[0-9.]+"  # a printed row that says a value and not of what
# inches: of a column of panels, a mark, a line of a name, around a panel
WIDTH = 4.2
PITCH = 0.11
LINE = 0.12
ROOM = 0.62
SMALL = 7  # points: the name of a mark, which fits its pitch
_MARKERS = {DRIFTED: "s", INCONCLUSIVE: "D", REPRODUCED: "o"}  # in the order of the rows
Claims = Mapping[str, tuple[str, str]]
OPEN_MARK: dict[str, Any] = {"linestyle": "none", "markersize": 6.5, "markerfacecolor": "none"}
MARKS = ["panel", "series", "side", "x", "value", "low", "high", "n"]
TITLE = 30  # characters of a line above a panel
_WORDS = {
    "sweep": "test score at the last epoch, {mean}",
    "gain": "gain in percent of the score without the added term, {mean}",
    "convergence": "test score after each evaluated epoch, mean over seeds, "
    "band of one standard deviation",
    "effect": "difference in percentage points, paired by seed, {mean}",
}
# Ordered colours for ordered batch sizes, of which white paper and a dark page leave this part.
_LEVELS = "viridis"
_DARKEST = 0.3
_LIGHTEST = 0.75
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
Axes = Any


@FIGURES.register("verdicts", display="Differences to the references")
@styled()
def verdicts(inputs: StudyResults) -> Drawing:
    """Return a small panel for each printed table, with all its judged numbers as in the print."""
    table = inputs.some("verdicts")
    judged = table[table["difference"].notna() & table["verdict"].isin([*_MARKERS])]
    if judged.empty:
        words = listed([words_of(word) for word in sorted(set(table["verdict"]))])
        raise NothingToShow(
            f"none of {count(len(table), 'reference number')} was measured (all are {words})"
        )
    same = judged["source"].eq(FROZEN) & judged["se"].eq(0) & judged["difference"].eq(0)
    if same.all():
        raise NothingToShow(f"all {len(judged)} numbers are those of the frozen runs, to the bit")
    parts: dict[Any, pd.DataFrame] = dict(list(judged.groupby(["source", "table"])))
    papers = inputs.grid.papers
    in_order = sorted(parts, key=lambda name: (name[0] == FROZEN, papers.in_print(*name)))
    panels = [_placed(parts[name], inputs) for name in in_order]
    heights = [part["at"].max() + ROOM for part in panels]
    # Two columns of panels, to be read one after the other.
    half = sum(np.cumsum(heights) - np.array(heights) / 2 < sum(heights) / 2)
    columns = [each for each in (heights[:half], heights[half:]) if each]
    height = max(map(sum, columns))
    figure = new_figure(WIDTH * len(columns), height + 0.3)[0]
    figure.clear()
    grids = figure.subfigures(1, len(columns), squeeze=False)[0]
    left = iter(panels)
    for grid, own in zip(grids, columns, strict=True):
        ratios = [*own, height - sum(own) + 1e-3]
        *places, rest = grid.subplots(len(ratios), height_ratios=ratios, squeeze=False).flat
        rest.remove()
        for axes in places:
            _panel(axes, next(left), inputs)
    legend_below(figure)
    counts = table["verdict"].value_counts()
    counted = ", ".join(f"{number} {words_of(str(word))}" for word, number in counts.items())
    caption = (
        "Difference to each reference number with its interval, a panel for each table, in the "
        "order of the print. What each line of a row is of stands on the right; the grey band is "
        "the margin. Filled marks: the verdict stands if laboratories differ; open ones: it does "
        "not, or nothing is decided. Drifts are named below the name of their row. "
        f"The rule is {rule(table['level'].min())}. References that were not run are not drawn."
    )
    alt = f"Interval plot of {len(judged)} differences to reference numbers: {counted}."
    values = pd.to_numeric(judged["published_value"])
    return Drawing(caption, alt, figure, judged[FILED].assign(published_value=values))


def _placed(part: pd.DataFrame, inputs: StudyResults) -> pd.DataFrame:
    """Return the numbers of a table by printed rows, with their heights, in inches from above."""
    frozen = part["source"] == part["table"]
    printed = part["row_label"].mask(
        part["row_label"].str.fullmatch(NUMBER), _settings(part, inputs.papers)
    )
    names = printed.mask(frozen, part["loss"].map(inputs.label))
    words = load_vocabulary()
    # what a row's name leaves open; a paper has its datasets beside one another
    columns = ["backbone", "batch_size"]
    if frozen.all():
        columns.insert(0, "dataset")
    for column in columns:
        if (part[column].groupby(names).nunique() > 1).any():
            sized = "batch {:.0f}".format if column == "batch_size" else partial(words.name, column)
            names = names + " · " + part[column].map(sized)
    drifts = _drifts(part, names)
    part = part.assign(name=[_wrapped(name, drifts.get(name, "")) for name in names])
    order = part["name"].map([*dict.fromkeys(part["name"])].index)
    part = part.assign(order=order).sort_values("order", kind="stable")
    lines = part["name"].str.count("\n") + 1
    size = part.groupby("order")["name"].transform("size")
    step = np.maximum(PITCH, (LINE * lines + 0.04) / size)
    return part.assign(at=step.cumsum() - step / 2, step=step)


def _scores(part: pd.DataFrame) -> list[str]:
    """Return which score each number of a table is: "R@1 inaturalist"."""
    several = part["dataset"].nunique() > 1
    names = []
    for row in records(part, VerdictRow):
        words = [words_of(metric_label(row.metric))]
        if several and not row.split.startswith(row.dataset):
            words.append(row.dataset)
        if row.split != "test":
            words.append(row.split)
        names.append(" ".join(words))
    return names


def _wrapped(*lines: str) -> str:
    return "\n".join(textwrap.fill(line, 27) for line in lines if line)


def _drifts(part: pd.DataFrame, names: pd.Series) -> dict[str, str]:
    """Return "drifted: R@1 inaturalist, mAP@R cub" by name of a row that has a drift."""
    drifted = defaultdict(list)
    for name, score, verdict in zip(names, _scores(part), part["verdict"], strict=True):
        if verdict == DRIFTED:
            drifted[name].append(score)
    return {name: f"drifted: {', '.join(scores)}" for name, scores in drifted.items()}


def _settings(part: pd.DataFrame, papers: Papers) -> pd.Series:
    """Return what rows that are printed as a bare number are of: "tau 0.01, P 4, batch 256"."""
    paper = papers.of(part["source"].iloc[0])
    stated = {}
    if paper is not None:
        stated = {number.line: number.conditions for number in paper.numbers}
    order = dict.fromkeys(key for line in part["line"] for key in stated.get(line, ()))
    names = []
    for row in records(part, VerdictRow):
        conditions = stated.get(row.line, {})
        words = [f"{key.upper() if len(key) == 1 else key} {conditions[key]}" for key in order]
        names.append(", ".join([*words, f"batch {row.batch_size:.0f}"]))
    return pd.Series(names, index=part.index)


def _panel(axes: Axes, part: pd.DataFrame, inputs: StudyResults) -> None:
    """Draw the differences of one table."""
    margins = part["margin"].fillna(0)
    band = {"color": BAND, "alpha": 0.22, "linewidth": 0, "zorder": 0}
    axes.barh(part["at"], 2 * margins, left=-margins, height=part["step"], **band)
    axes.axvline(0, color=INK, linewidth=0.7)
    for key, some in part.groupby(["verdict", part["stands"].eq(True)]):
        word = str(key[0])
        stands = key[1]
        colour = COLOURS[TONES[word]]
        style = {"fmt": _MARKERS[word], "color": colour, "markersize": 2.6, "elinewidth": 0.7}
        style |= {"markerfacecolor": colour if stands else "white", "capsize": 0}
        label = f"{word}, stands" if stands else word
        ends = bars(some, "difference", "ci_low", "ci_high")
        axes.errorbar(some["difference"], some["at"], xerr=ends, label=label, **style)
    rows = part.groupby("order")
    if len(part) > len(rows):
        scores = axes.secondary_yaxis("right")
        scores.set_yticks(part["at"], _scores(part))
        scores.tick_params(length=0, labelsize=SMALL, pad=1)
        scores.spines["right"].set_visible(False)
    axes.set_yticks(rows["at"].mean(), rows["name"].first())
    tops = rows["step"].sum().cumsum()
    axes.hlines(tops[:-1], 0, 1, transform=axes.get_yaxis_transform(), color=GRID, linewidth=0.5)
    axes.set_ylim(tops.iloc[-1], 0)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    source, table = part[["source", "table"]].iloc[0]
    title = inputs.papers.cite(source, table) if source != table else "Frozen runs of this study"
    axes.set(title=title, xlabel="ours − reference (points)")


def paper_figures(inputs: StudyResults) -> Iterator[PlannedArtefact]:
    """Yield the papers' figures that the study has, then its sweeps on the embedded data."""
    papers = inputs.papers
    # {name of a claim: (where the paper says it, whether it holds here)}
    verdicts = {
        row.claim: (papers.cite_statement(row.paper, row.stated_in), row.verdict)
        for row in records(inputs.claims, ClaimRow)
        if row.reading == "here"
    }
    marks = {each.figure: each for each in inputs.printed.figures}
    for figure in papers.figures():
        if figure.name in marks:
            make = partial(draw, figure, marks[figure.name], inputs, verdicts)
            yield PlannedArtefact(
                figure.name, title_of(figure, papers), "paper" if figure.source else "sweep", make
            )


def title_of(figure: Figure, papers: Papers) -> str:
    """Return the title of a paper's figure: "ROADMAP, figure 4: ROADMAP's hyperparameters"."""
    if not figure.source:
        return figure.title
    place = papers.cite(figure.source, figure.name.removeprefix(f"{figure.source}_"))
    return f"{place}: {figure.title}"


@styled()
def draw(figure: Figure, marks: FigureMarks, inputs: StudyResults, verdicts: Claims) -> Drawing:
    """Return the figure; a panel without runs says so, and NothingToShow is raised if all are.

    ``verdicts`` are those of the claims that a panel names, which stand above it.
    """
    panels = figure.panels
    data = pd.DataFrame(
        [vars(mark) | {"series": series_of(mark, figure, inputs)} for mark in marks.marks],
        columns=[*MARKS, "test_set", "loss", "batch_size"],
    )
    ours = rows_of(data, side=OURS)
    if ours.empty:
        loss = inputs.label(panels[0].loss)
        where = ", ".join(dict.fromkeys(each.dataset for p in panels for each in p.test_sets))
        needed = count(marks.settings, "setting")
        raise NothingToShow(
            f"no run of {loss} on {where} has finished yet, of {needed} that the figure needs"
            if marks.settings > 1
            else f"the study has no runs of {loss} that vary what this figure shows on {where}"
        )
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    width = DOUBLE if columns > 1 else SINGLE + 1.2
    drawing, grid = new_figure(width, 2.4 * rows + 0.6, rows, columns)
    for number, (axes, panel) in enumerate(zip(grid.flat, panels, strict=False)):
        here = rows_of(data, panel=number)
        DRAWERS[figure.kind](axes, panel, here, inputs)
        axes.set_title("\n".join([panel.title, *_judged(panel, verdicts)]))
        if number not in set(ours["panel"]):
            middle = {"transform": axes.transAxes, "ha": "center", "va": "center"}
            axes.text(0.5, 0.5, "not run", color=FAINT, **middle)
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    # Published values end the legend in no colour of their own: they stand beside every series.
    legend_below(drawing, columns=4 if columns > 1 else 2, last=(PUBLISHED, published_key()))
    data = data[MARKS].assign(panel=data["panel"].map({n: p.title for n, p in enumerate(panels)}))
    ranges = "; ".join(
        f"{series} in panel '{panel}' from {part['value'].min():.1f} to {part['value'].max():.1f}"
        for (panel, series), part in list(
            rows_of(data, side=OURS).groupby(["panel", "series"], sort=False)
        )[:6]
    )
    alt = f"{title_of(figure, inputs.papers)}. {metric_label(panels[0].metric)}: {ranges}."
    words = _WORDS[figure.kind].format(
        mean=f"mean over seeds with its {inputs.confidence} t interval"
    )
    caption = f"{words[0].upper()}{words[1:]}."
    if (data["side"] == PUBLISHED).any():
        caption += " Open marks and dotted lines are published values."
    moved = any(len(panel.test_sets) > 1 and on_log_axis(panel) for panel in panels)
    if figure.kind == "sweep" and moved:
        caption += f" {MOVED}"
    if any(panel.claims for panel in panels):
        caption += " Above each panel: what papers say about it, and whether that is so here."
    facts = {(panel.backbone, panel.batch_size) for panel in panels}
    if len(facts) == 1:
        backbone, size = facts.pop()
        named = load_vocabulary().name("backbone", backbone)
        caption += f" Backbone {named}" + (f", batch size {size}." if size else ".")
    return Drawing(caption, alt, drawing, data)


def series_of(mark: Mark, figure: Figure, inputs: StudyResults) -> str:
    """Return the name of the line that a mark belongs to, for a legend."""
    panel = figure.panels[mark.panel]
    loss = inputs.label(mark.loss)
    if mark.batch_size is not None:
        return f"batch size {mark.batch_size}"
    if panel.loss_against and mark.loss == panel.loss:
        return f"{loss} over {inputs.label(panel.loss_against)}"
    alone = len(panel.test_sets) == 1 and not panel.parameter
    if alone or mark.loss != panel.loss:
        return loss
    return name_of_test_set(panel.test_sets[mark.test_set])


def name_of_test_set(test_set: TestSet) -> str:
    """Return a test set for a legend: "Revisited Oxford, medium"."""
    words = load_vocabulary()
    dataset, _, level = test_set.split.rpartition("_")
    if dataset:
        return f"{words.name('dataset', dataset)}, {level}"
    name = words.name("dataset", test_set.dataset)
    return f"{name}, {test_set.split}" if test_set.split else name


def _judged(panel: Panel, verdicts: Claims) -> Iterator[str]:
    """Yield lines such as "ROADMAP, figure 4b: 1 supported, 1 inconclusive", one per place."""
    found: dict[str, Counter[str]] = {}
    for where, verdict in (verdicts[name] for name in panel.claims if name in verdicts):
        found.setdefault(where, Counter())[verdict] += 1
    for where, words in found.items():
        counted = [
            f"{words[word]} {words_of(word)}" if words.total() > 1 else words_of(word)
            for word in CLAIM_VERDICTS
            if word in words
        ]
        yield from textwrap.wrap(f"{where}: {', '.join(counted)}", TITLE)


def sweep(axes: Axes, panel: Panel, marks: pd.DataFrame, inputs: StudyResults) -> None:
    """Draw the score against a hyperparameter or the batch size, one line per test set."""
    alone = len(panel.test_sets) == 1
    log = on_log_axis(panel)
    middle = (len(panel.test_sets) - 1) / 2
    positions = set()
    for number, (_, each) in enumerate(zip(panel.test_sets, SERIES, strict=False)):
        style = line(panel.loss if alone else each)
        style |= {"linestyle": "none"} if panel.words else {}
        ours, printed = _lines(marks, panel.loss, number)
        # factors keep the series apart on a logarithmic axis
        _errorbar(axes, ours, style, 1.04 ** (number - middle) if log else 1.0)
        _published(axes, printed, style)
        positions |= {*ours["x"], *printed["x"]}
        if panel.baseline:
            own = line(panel.baseline)
            named = inputs.label(panel.baseline)
            ours, printed = _lines(marks, panel.baseline, number)
            for value in ours["value"]:
                level = {"color": own["color"], "linestyle": own["linestyle"]}
                axes.axhline(value, **level, label=f"{named} alone")
            for value in printed["value"]:
                level = {"color": own["color"], "linestyle": ":", "linewidth": 0.8}
                axes.axhline(value, **level, label=f"{named} alone, published")
    if panel.words:
        _named_ticks(axes, [words.replace(" ", "\n", 1) for words in panel.words.values()])
    elif log:
        _log_axis(axes, positions)
    label = "batch size (images)" if panel.x == BATCH_SIZE else panel.label
    axes.set(xlabel=label, ylabel=f"{metric_label(panel.metric)} (%)")


def on_log_axis(panel: Panel) -> bool:
    """Return whether the x of a panel is drawn on a logarithmic axis."""
    return panel.x == BATCH_SIZE or panel.scale == "log"


def gain(axes: Axes, panel: Panel, marks: pd.DataFrame, inputs: StudyResults) -> None:
    """Draw the gain of one loss over another in percent of the latter, against batch size."""
    axes.axhline(0, color=INK, linewidth=0.7)
    style = line(panel.loss)
    ours, printed = _lines(marks, panel.loss)
    _errorbar(axes, ours, style)
    _published(axes, printed, style)
    _log_axis(axes, {*ours["x"], *printed["x"]})
    axes.set(xlabel="batch size (images)", ylabel=f"gain in {metric_label(panel.metric)} (%)")


def convergence(axes: Axes, panel: Panel, marks: pd.DataFrame, inputs: StudyResults) -> None:
    """Draw the test score against the epoch, one curve per batch size."""
    from matplotlib import colormaps

    sizes = sorted(marks["batch_size"].dropna().unique())
    for number, size in enumerate(sizes):
        curve = rows_of(marks, batch_size=size)
        level = _DARKEST + (_LIGHTEST - _DARKEST) * number / max(1, len(sizes) - 1)
        colour = colormaps[_LEVELS](level)
        band = {"color": colour, "alpha": 0.15, "linewidth": 0}
        axes.fill_between(curve["x"], curve["low"], curve["high"], **band)
        style = {"color": colour, "marker": "osD^vP<>"[number % 8]}
        every = max(1, len(curve) // 8)
        label = curve["series"].iloc[0]
        axes.plot(curve["x"], curve["value"], markevery=every, label=label, **style)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(xlabel="epoch", ylabel=f"{metric_label(panel.metric)} (%)")


def effect(axes: Axes, panel: Panel, marks: pd.DataFrame, inputs: StudyResults) -> None:
    """Draw the paired difference of two settings, one mark per test set."""
    axes.axhline(0, color=INK, linewidth=0.7)
    style = line(panel.loss) | {"linestyle": "none"}
    _errorbar(axes, marks.assign(series=None), style)
    _named_ticks(axes, [name_of_test_set(each).replace(", ", "\n") for each in panel.test_sets])
    axes.set_ylabel(f"difference in {metric_label(panel.metric)} (points)")


DRAWERS = {"sweep": sweep, "gain": gain, "convergence": convergence, "effect": effect}


def _lines(marks: pd.DataFrame, loss: str, test_set: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return our marks and the published ones of a loss on a test set."""
    ours, printed = (
        rows_of(marks, test_set=test_set, loss=loss, side=side) for side in (OURS, PUBLISHED)
    )
    return ours, printed


def _errorbar(axes: Axes, marks: pd.DataFrame, style: dict[str, Any], factor: float = 1.0) -> None:
    """Draw marks with their intervals, if there are any, at ``factor`` times their x."""
    if len(marks):
        style = {"yerr": bars(marks, "value"), "label": marks["series"].iloc[0], **style}
        axes.errorbar(marks["x"] * factor, marks["value"], **style)


def _published(axes: Axes, printed: pd.DataFrame, style: dict[str, Any]) -> None:
    look = {"color": style["color"], "marker": style["marker"], "markeredgewidth": 0.9}
    if len(printed):
        axes.plot(printed["x"], printed["value"], **OPEN_MARK, **look, label=PUBLISHED)


def published_key() -> Any:
    """Return the legend's key of published values: an open mark in the colour of the text."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=INK, marker="o", **OPEN_MARK)


def _named_ticks(axes: Axes, names: list[str]) -> None:
    axes.set_xticks(range(len(names)), [*map(plain, names)])
    axes.set_xlim(-0.5, len(names) - 0.5)


def _log_axis(axes: Any, found: set[float]) -> None:
    """Give an axis a logarithmic scale, 0 one step left, and ticks where labels have room."""
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
