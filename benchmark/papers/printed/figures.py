"""The marks of papers' figures: our runs at each x, and published values beside them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmark.papers.arrangements import Figure, Panel, TestSet
from benchmark.papers.library import all_figures, paper_of, vocabulary_of
from benchmark.papers.printed.grid import Axis, Grid, by_x, plain_scores
from benchmark.stats.intervals import t_interval
from benchmark.study.documents import JOINT

OURS, PUBLISHED = "ours", "published"


@dataclass(frozen=True)
class Mark:
    """One mark of a panel, in percent: a mean over ``n`` seeds with interval, or a published value.

    test_set    index into those of the panel
    loss        registry name: of the panel's loss, or of its baseline, whose marks have no x
    batch_size  of a curve over epochs
    """

    panel: int
    test_set: int
    loss: str
    side: str
    x: float | None
    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    batch_size: int | None = None


@dataclass(frozen=True)
class FigureMarks:
    """The marks of one figure; ``settings``: how many x the study asks for in its fullest panel."""

    figure: str
    settings: int
    marks: tuple[Mark, ...]


def figure_marks(grid: Grid) -> list[FigureMarks]:
    """Return the figures of a study: by its name, or because its grid asks for their runs."""
    study, found = grid.study, []
    for figure in all_figures():
        settings = max(_settings(grid, figure, panel) for panel in figure.panels)
        by_grid = settings > 1 and bool(figure.source)
        if study.name.partition(JOINT)[0] in figure.studies or by_grid:
            marks = [
                mark
                for number, panel in enumerate(figure.panels)
                for mark in _panel_marks(grid, figure, number, panel)
            ]
            found.append(FigureMarks(figure.name, settings, tuple(marks)))
    return found


def _settings(grid: Grid, figure: Figure, panel: Panel) -> int:
    """Return how many different x the study's grid has runs for."""
    axis = Axis(panel, vocabulary_of(figure.source))
    cells = [
        each
        for test_set in panel.test_sets
        for each in grid.candidates(panel, test_set, panel.loss, axis.varied)
    ]
    if figure.kind == "effect":
        return len({axis.word(each) for each in cells})
    return len({axis.x(each) for each in cells} - {None})


@dataclass(frozen=True)
class Line:
    """One line of a panel: what it is made of, and what its marks have in common."""

    grid: Grid
    panel: Panel
    test_set: TestSet
    axis: Axis
    mark: Mark

    def over_seeds(self, values: Iterable[float], **facts: Any) -> Mark:
        """Return the mark of the mean of ``values``, one a seed."""
        found = t_interval(list(values), 1 - self.grid.study.comparison.alpha)
        low, high = (None if np.isnan(end) else end for end in (found.low, found.high))
        return replace(self.mark, value=found.mean, low=low, high=high, n=found.n, **facts)


def _panel_marks(grid: Grid, figure: Figure, number: int, panel: Panel) -> Iterator[Mark]:
    kinds = {"sweep": _sweep, "gain": _gain, "convergence": _convergence, "effect": _effect}
    axis = Axis(panel, vocabulary_of(figure.source))
    for index, test_set in enumerate(panel.test_sets):
        mark = Mark(number, index, panel.loss, OURS, None, np.nan)
        yield from kinds[figure.kind](Line(grid, panel, test_set, axis, mark))
        for loss in filter(None, (panel.loss, panel.baseline)):
            for x, value in published(figure.source, panel, test_set, loss):
                x_here = x if loss == panel.loss else None
                yield replace(mark, loss=loss, side=PUBLISHED, x=x_here, value=value)


def _sweep(line: Line) -> Iterator[Mark]:
    """Yield the score at each value of a hyperparameter or batch size, and that of the baseline."""
    grid, panel = line.grid, line.panel
    for x, sample in by_x(grid, panel, line.test_set, line.axis).items():
        yield line.over_seeds(sample.by_seed.values(), x=x)
    if panel.baseline:
        sample = plain_scores(grid, panel, line.test_set, panel.baseline)
        if sample.n:
            yield line.over_seeds(sample.by_seed.values(), loss=panel.baseline)


def _gain(line: Line) -> Iterator[Mark]:
    """Yield the gain of one loss over another in percent of the latter, by batch size."""
    grid, panel, test_set = line.grid, line.panel, line.test_set
    ours, theirs = (
        {
            (each.cell.setting, each.cell.batch_size): grid.scores(
                each, test_set, panel.metric
            ).by_seed
            for each in grid.candidates(panel, test_set, loss)
        }
        for loss in (panel.loss, panel.loss_against)
    )
    for key in sorted(ours.keys() & theirs.keys(), key=lambda key: key[1]):
        first, second = ours[key], theirs[key]
        seeds = sorted(seed for seed in first.keys() & second.keys() if second[seed] > 0)
        if seeds:
            gains = [100 * (first[seed] - second[seed]) / second[seed] for seed in seeds]
            yield line.over_seeds(gains, x=key[1])


def _convergence(line: Line) -> Iterator[Mark]:
    """Yield the score after each epoch by batch size, with a band of one standard deviation."""
    plain = line.grid.candidates(line.panel, line.test_set, line.panel.loss)
    by_size = {each.cell.batch_size: each for each in plain}
    for size, candidate in sorted(by_size.items()):
        curve = line.grid.curve(candidate, line.test_set, line.panel.metric)
        if curve is None:
            continue
        epochs = 100 * curve.groupby("epoch")["value"].agg(["mean", "std"]).fillna(0.0)
        counts = curve.groupby("epoch").size()
        for epoch, mean, sd in epochs.itertuples():
            ends = {"low": mean - sd, "high": mean + sd, "n": int(counts[epoch])}
            yield replace(line.mark, x=epoch, value=mean, batch_size=size, **ends)


def _effect(line: Line) -> Iterator[Mark]:
    """Yield the paired difference, in points, of two settings of one parameter."""
    grid, panel = line.grid, line.panel
    sides: dict[str, Mapping[int, float]] = {}
    for candidate in grid.candidates(panel, line.test_set, panel.loss, line.axis.varied):
        scores = grid.scores(candidate, line.test_set, panel.metric)
        sides.setdefault(line.axis.word(candidate), scores.by_seed)
    first, second = (sides.get(word, {}) for word in (panel.first, panel.second))
    seeds = sorted(first.keys() & second.keys())
    if seeds:
        yield line.over_seeds([first[seed] - second[seed] for seed in seeds], x=line.mark.test_set)


def published(
    source: str, panel: Panel, test_set: TestSet, loss: str
) -> Iterator[tuple[float, float]]:
    """Yield the x and the value of the printed numbers that stand beside a line."""
    paper = paper_of(source)
    if panel.published is None or paper is None:
        return
    rows = [
        each
        for each in paper.table(panel.published.table)
        if each.dataset == (test_set.printed or test_set.dataset)
        and (each.loss, each.protocol) == (loss, test_set.protocol)
        and each.backbone in ("", panel.backbone)
    ]
    if any(each.is_score for each in rows):
        rows = [each for each in rows if each.metric == panel.metric]
    at = panel.published.at
    for each in rows:
        value = each.points if each.is_score else float(each.value)
        if at is None and each.batch_size is not None:
            yield each.batch_size, value
        elif at is not None and each.batch_size == panel.batch_size:
            yield at, value
