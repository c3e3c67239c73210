"""The marks of papers' figures: our runs at each x, and published values beside them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmark.papers.arrangements import Figure, Panel, TestSet
from benchmark.papers.library import all_figures, paper_of, vocabulary_of
from benchmark.papers.printed.grid import Grid, Line
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
    name, found = grid.study.name.partition(JOINT)[0], []
    for figure in all_figures():
        words = vocabulary_of(figure.source)
        panels = [
            [Line(grid, panel, test_set, words) for test_set in panel.test_sets]
            for panel in figure.panels
        ]
        settings = max(_settings(figure, lines) for lines in panels)
        if name in figure.studies or (settings > 1 and figure.source):
            marks = [
                mark
                for number, lines in enumerate(panels)
                for test_set, line in enumerate(lines)
                for mark in _marks(figure, line, number, test_set)
            ]
            found.append(FigureMarks(figure.name, settings, tuple(marks)))
    return found


def _settings(figure: Figure, lines: Iterable[Line]) -> int:
    """Return how many different x the study's grid has runs for in a panel."""
    if figure.kind == "effect":
        return len({line.word(each) for line in lines for each in line.cells})
    return len({line.x(each) for line in lines for each in line.cells} - {None})


def _marks(figure: Figure, line: Line, number: int, test_set: int) -> Iterator[Mark]:
    kinds = {"sweep": _sweep, "gain": _gain, "convergence": _convergence, "effect": _effect}
    panel = line.panel
    mark = Mark(number, test_set, panel.loss, OURS, None, np.nan)
    yield from kinds[figure.kind](line, mark)
    for loss in filter(None, (panel.loss, panel.baseline)):
        for x, value in published(figure.source, panel, line.test_set, loss):
            x_here = x if loss == panel.loss else None
            yield replace(mark, loss=loss, side=PUBLISHED, x=x_here, value=value)


def _over_seeds(line: Line, mark: Mark, values: Iterable[float], **facts: Any) -> Mark:
    """Return the mark of the mean of ``values``, one a seed."""
    found = t_interval(list(values), 1 - line.grid.study.comparison.alpha)
    low, high = (None if np.isnan(end) else end for end in (found.low, found.high))
    return replace(mark, value=found.mean, low=low, high=high, n=found.n, **facts)


def _sweep(line: Line, mark: Mark) -> Iterator[Mark]:
    """Yield the score at each value of a hyperparameter or batch size, and that of the baseline."""
    for x, sample in line.by_x().items():
        yield _over_seeds(line, mark, sample.by_seed.values(), x=x)
    if (beside := line.baseline()).n:
        yield _over_seeds(line, mark, beside.by_seed.values(), loss=line.panel.baseline)


def _gain(line: Line, mark: Mark) -> Iterator[Mark]:
    """Yield the gain of one loss over another in percent of the latter, by batch size."""
    ours, theirs = (
        {
            (each.cell.setting, each.cell.batch_size): line.scores(each).by_seed
            for each in line.plain(loss)
        }
        for loss in (line.panel.loss, line.panel.loss_against)
    )
    for key in sorted(ours.keys() & theirs.keys(), key=lambda key: key[1]):
        first, second = ours[key], theirs[key]
        seeds = sorted(seed for seed in first.keys() & second.keys() if second[seed] > 0)
        if seeds:
            gains = [100 * (first[seed] - second[seed]) / second[seed] for seed in seeds]
            yield _over_seeds(line, mark, gains, x=key[1])


def _convergence(line: Line, mark: Mark) -> Iterator[Mark]:
    """Yield the score after each epoch by batch size, with a band of one standard deviation."""
    by_size = {each.cell.batch_size: each for each in line.plain(line.panel.loss)}
    for size, candidate in sorted(by_size.items()):
        curve = line.curve(candidate)
        if curve is None:
            continue
        epochs = 100 * curve.groupby("epoch")["value"].agg(["mean", "std"]).fillna(0.0)
        counts = curve.groupby("epoch").size()
        for epoch, mean, sd in epochs.itertuples():
            ends = {"low": mean - sd, "high": mean + sd, "n": int(counts[epoch])}
            yield replace(mark, x=epoch, value=mean, batch_size=size, **ends)


def _effect(line: Line, mark: Mark) -> Iterator[Mark]:
    """Yield the paired difference, in points, of two settings of one parameter."""
    sides: dict[str, Mapping[int, float]] = {}
    for candidate in line.cells:
        sides.setdefault(line.word(candidate), line.scores(candidate).by_seed)
    first, second = (sides.get(word, {}) for word in (line.panel.first, line.panel.second))
    seeds = sorted(first.keys() & second.keys())
    if seeds:
        gaps = [first[seed] - second[seed] for seed in seeds]
        yield _over_seeds(line, mark, gaps, x=mark.test_set)


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
