"""What papers' tables, figures and sweeps show of a study.

A printed table shows verdicts, or what else the runs measured. A figure shows marks of our runs at
each x, and the published values beside them. A sweep shows values with paired tests against the
default.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from benchmark.core.records import CELL_COLUMNS, Cell, Setting
from benchmark.published.paper import sweep_figures
from benchmark.published.quantities import GapDecrease, costs_of
from benchmark.published.schema import BATCH_SIZE, Figure, Panel, Paper, PublishedNumber, TestSet
from benchmark.published.vocabulary import Condition, Vocabulary, load_vocabulary
from benchmark.runs.run_table import RunTable
from benchmark.stats.intervals import t_interval
from benchmark.stats.paired import against_default
from benchmark.stats.samples import (
    NO_RUNS,
    BySeed,
    Sample,
    Samples,
    Score,
    differences_by_seed,
    gains_by_seed,
)
from benchmark.study.model import JOINT
from benchmark.verdicts.matching import Candidate, StudyGrid, match, stated_by
from benchmark.verdicts.verdicts import NOT_RUN, VERDICT

OURS = "ours"
PUBLISHED = "published"


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


@dataclass(frozen=True)
class Printed:
    """What papers' tables, figures and sweeps show of a study.

    numbers   ``printed_numbers`` of the arranged tables
    sweeps    ``swept_values``
    against   by the file name of a printed table: our values that follow the authors' code where
              the code contradicts the paper's text
    """

    numbers: pd.DataFrame = field(default_factory=pd.DataFrame)
    figures: tuple[FigureMarks, ...] = ()
    sweeps: pd.DataFrame = field(default_factory=pd.DataFrame)
    against: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def printed_of(
    grid: StudyGrid,
    table: RunTable,
    verdicts: pd.DataFrame,
    other: pd.DataFrame,
    gaps: Sequence[GapDecrease] = (),
) -> Printed:
    """Return what papers show of a study, from its runs, its verdicts and the analysed gaps.

    ``verdicts`` are at the epoch that each paper reports, ``other`` at the other epoch.
    """
    shown = Grid(grid, table, gaps)
    arranged = {
        f"{paper.source}_{name}": paper.table(name)
        for paper, name in grid.papers.arranged(grid.study.references.published)
    }
    asked = [number for numbers in arranged.values() for number in numbers]
    return Printed(
        printed_numbers(shown, asked, verdicts, other),
        tuple(figure_marks(shown)),
        swept_values(shown),
        {file: shown.against(numbers) for file, numbers in arranged.items()},
    )


def printed_numbers(
    grid: Grid,
    numbers: Iterable[PublishedNumber],
    verdicts: pd.DataFrame,
    other: pd.DataFrame,
) -> pd.DataFrame:
    """Return ``verdicts`` that were run, and a row for each other number, by source and line.

    ``other_mean`` and ``other_verdict`` are of ``other``. A number that no verdict judges has the
    mean of what the runs measured, in points or in the unit of the print, and ``instead`` of the
    verdict the word of its kind.
    """
    key = ["source", "line"]
    other = other[other["line"].notna()].set_index(key)
    other_words = (other["verdict"] + " " + other["direction"]).str.strip()
    columns = pd.DataFrame({"other_mean": other["ours_mean"], "other_verdict": other_words})
    run = verdicts["line"].notna() & (verdicts["verdict"] != NOT_RUN)
    judged = verdicts[run].set_index(key).join(columns)
    unjudged = []
    for number in numbers:
        if (number.source, number.line) not in judged.index:
            values = grid.measured(number)
            n, mean, sd, *_ = t_interval(values)
            word = {"instead": number.kind.word}
            if number.reproducible and not values:
                word = {"verdict": NOT_RUN}
            row = {
                **word,
                "source": number.source,
                "line": number.line,
                "ours_n": n,
                "ours_mean": mean,
                "ours_sd": sd,
                "assumed": False,
            }
            unjudged.append(row)
    measured = pd.DataFrame(unjudged, columns=[*key, *judged, "instead"]).set_index(key)
    rows = pd.concat([judged, measured])
    texts = [name for name in rows if name not in VERDICT or VERDICT[name].kind == "text"]
    return rows.astype(dict.fromkeys(texts, object)).fillna(dict.fromkeys(texts, ""))


class Grid:
    """A study's runs and gaps, as printed numbers and figures are matched with them."""

    def __init__(self, grid: StudyGrid, table: RunTable, gaps: Sequence[GapDecrease]):
        self.study = grid.study
        self.papers = grid.papers
        self.name = self.study.name.partition(JOINT)[0]
        self.samples = Samples(table)
        self.gaps = gaps
        self.costs = costs_of(table)
        self.candidates = list(grid.candidates.values())
        self.curves: dict[Score, pd.DataFrame] = {}
        curves = table.test_scores("curve").groupby([*CELL_COLUMNS, "split", "metric"])
        for (*columns, split, metric), rows in curves:
            self.curves[Cell.of(columns), str(split), str(metric)] = rows

    def against(self, numbers: Iterable[PublishedNumber]) -> tuple[str, ...]:
        """Return our values that follow the authors' code where it contradicts the paper's text."""
        values: dict[str, None] = {}
        for number in numbers:
            if number.reproducible:
                candidate = match(stated_by(number), self.candidates).candidate
                values |= dict.fromkeys(candidate.against if candidate else ())
        return tuple(values)

    def measured(self, number: PublishedNumber) -> list[float]:
        """Return what runs measured of a number without a verdict.

        A verdict judges a score unless its runs differ from the printed row in a condition that is
        ``free``, such as the training set. A gap has no value if our gaps come from several batch
        sizes, because the paper prints one number.
        """
        kind = number.kind
        stated = stated_by(number)
        asked = tuple(each for each in stated.requirements if each.key not in kind.free)
        if number.judged and asked == stated.requirements:
            return []
        statuses = self.samples.statuses
        collected = [candidate for candidate in self.candidates if candidate.cell in statuses]
        matched = match(replace(stated, requirements=asked), collected, self.samples.splits)
        gaps = [gap for gap in self.gaps if gap.dataset == number.dataset]
        is_one_size = len({gap.batch_size for gap in gaps}) == 1
        ours: dict[str, BySeed] = {}
        ours["gaps"] = {gap.seed: gap.decrease for gap in gaps if is_one_size}
        if matched.candidate:
            cell = matched.candidate.cell
            ours["scores"] = self.samples.sample(cell, matched.split, number.metric).by_seed
            ours["costs"] = self.costs.get((cell, number.metric), {})
        return list(ours.get(kind.measured, {}).values())


class PanelLine:
    """One line of a panel: a loss on a test set, and what the x axis varies."""

    def __init__(self, grid: Grid, panel: Panel, test_set: TestSet, vocabulary: Vocabulary):
        self.grid = grid
        self.panel = panel
        self.test_set = test_set
        x = panel.parameter or panel.x
        names = [] if x in ("", BATCH_SIZE) else x.split(" - ")
        stated = vocabulary.requirements(dict.fromkeys(names, ""))
        self.varied = tuple(requirement.condition for requirement in stated)

    @cached_property
    def cells(self) -> list[Candidate]:
        """The cells of the panel's loss. Cells that vary something come first."""
        cells = self.of(self.panel.loss, self.varied)
        return sorted(cells, key=lambda candidate: not candidate.changed)

    def of(self, loss: str, varied: tuple[Condition, ...] = ()) -> list[Candidate]:
        """Return the cells of a loss that differ from recipe and loss in ``varied`` alone."""

        def is_varied(column: str) -> bool:
            return any(condition.covers(column) for condition in varied)

        return [
            candidate
            for candidate in self.grid.candidates
            if candidate.cell.base_loss == loss
            and candidate.cell.dataset == self.test_set.dataset
            and self.panel.batch_size in (None, candidate.cell.batch_size)
            and self.panel.backbone == candidate.backbone
            and all(map(is_varied, candidate.changed))
        ]

    def key(self, candidate: Candidate) -> Score:
        """Return the key of a cell's scores: cell, split and metric."""
        splits = self.grid.samples.splits.get(candidate.cell, {"test"})
        only = "test" if "test" in splits else min(splits)
        return candidate.cell, self.test_set.split or only, self.panel.metric

    def scores(self, candidate: Candidate) -> Sample:
        """Return the headline scores of a cell, or ``NO_RUNS``."""
        return self.grid.samples.sample(*self.key(candidate))

    def by_x(self) -> dict[float, Sample]:
        """Return, in order of x, the scores of the first cell with scores at each x."""
        samples: dict[float, Sample] = {}
        for candidate in self.cells:
            x = self.x(candidate)
            sample = self.scores(candidate)
            if x is not None and sample.n:
                samples.setdefault(x, sample)
        return dict(sorted(samples.items()))

    def baseline(self) -> Sample:
        """Return the scores of the panel's baseline at its batch size, or ``NO_RUNS``."""
        plain = self.of(self.panel.baseline)
        return self.scores(plain[0]) if plain else NO_RUNS

    def word(self, candidate: Candidate) -> str:
        """Return the paper's word for a cell's value of the one varied condition."""
        condition = self.varied[0]
        return condition.word(candidate.settings.get(condition.column))

    def x(self, candidate: Candidate) -> float | None:
        """Return the x of a cell, or None for one that has none."""
        if not self.varied:
            return candidate.cell.batch_size
        if self.panel.words:
            names = list(self.panel.words)
            word = self.word(candidate)
            return names.index(word) if word in names else None
        values: list[Any] = [candidate.settings.get(varied.column) for varied in self.varied]
        if not all(isinstance(value, int | float) for value in values):
            return None
        first, *others = values
        x: float = round(first - sum(others), 10)
        return x


def figure_marks(grid: Grid) -> list[FigureMarks]:
    """Return the figures of a study: those that name it, and those whose runs its grid has."""
    figures = []
    for figure in grid.papers.figures():
        lines = _lines(grid, figure)
        values_of_panels: dict[int, set[Any]] = defaultdict(set)
        for line, mark in lines:
            axis = line.word if figure.kind == "effect" else line.x
            values_of_panels[mark.panel] |= {axis(candidate) for candidate in line.cells} - {None}
        settings = max(map(len, values_of_panels.values()))
        is_reached = settings > 1 and figure.source
        if grid.name in figure.studies or is_reached:
            marks: list[Mark] = []
            for line, mark in lines:
                marks += _MARKS[figure.kind](line, mark)
                marks += _published_marks(figure.source, line, mark)
            figures.append(FigureMarks(figure.name, settings, tuple(marks)))
    return figures


def _lines(grid: Grid, figure: Figure) -> list[tuple[PanelLine, Mark]]:
    """Return the lines of a figure, each with a mark that has its place alone."""
    vocabulary = grid.papers.vocabulary(figure.source)
    lines = []
    for panel_number, panel in enumerate(figure.panels):
        for set_number, test_set in enumerate(panel.test_sets):
            mark = Mark(panel_number, set_number, panel.loss, OURS, None, np.nan)
            lines.append((PanelLine(grid, panel, test_set, vocabulary), mark))
    return lines


def _published_marks(source: str, line: PanelLine, mark: Mark) -> Iterator[Mark]:
    """Yield the published values of the panel's loss, and of its baseline, which have no x."""
    panel = line.panel
    paper = line.grid.papers.of(source)
    for x, value in published(paper, panel, line.test_set, panel.loss):
        yield replace(mark, side=PUBLISHED, x=x, value=value)
    if panel.baseline:
        for _, value in published(paper, panel, line.test_set, panel.baseline):
            yield replace(mark, loss=panel.baseline, side=PUBLISHED, value=value)


def _over_seeds(line: PanelLine, mark: Mark, values: Iterable[float], **facts: Any) -> Mark:
    """Return a mark at the mean of values by seed, with its interval where there is one."""
    interval = t_interval(values, 1 - line.grid.study.comparison.alpha)
    if not np.isnan(interval.low):
        facts |= {"low": interval.low, "high": interval.high}
    return replace(mark, value=interval.mean, n=interval.n, **facts)


def _sweep(line: PanelLine, mark: Mark) -> Iterator[Mark]:
    for x, sample in line.by_x().items():
        yield _over_seeds(line, mark, sample.by_seed.values(), x=x)
    baseline = line.baseline()
    if baseline.n:
        yield _over_seeds(line, mark, baseline.by_seed.values(), loss=line.panel.baseline)


def _gain(line: PanelLine, mark: Mark) -> Iterator[Mark]:
    """Yield the gain of one loss over another in percent of the latter, by batch size."""

    def by_setting(loss: str) -> dict[tuple[int, Setting], Sample]:
        samples = {}
        for candidate in line.of(loss):
            cell = candidate.cell
            samples[cell.batch_size, cell.setting] = line.scores(candidate)
        return samples

    ours = by_setting(line.panel.loss)
    theirs = by_setting(line.panel.loss_against)
    for key in sorted(ours.keys() & theirs.keys(), key=itemgetter(0)):
        if gains := gains_by_seed(ours[key], theirs[key]):
            yield _over_seeds(line, mark, gains.values(), x=key[0])


def _convergence(line: PanelLine, mark: Mark) -> Iterator[Mark]:
    """Yield the score after each epoch by batch size, with a band of one standard deviation."""
    by_size = {cell.cell.batch_size: cell for cell in line.of(line.panel.loss)}
    for size, candidate in sorted(by_size.items()):
        curve = line.grid.curves.get(line.key(candidate))
        if curve is None:
            continue
        epochs = curve.groupby("epoch")["value"].agg(["mean", "std", "size"]).fillna(0.0)
        for epoch, mean, sd, n in epochs.itertuples():
            value = 100 * mean
            width = 100 * sd
            yield replace(
                mark,
                x=epoch,
                value=value,
                low=value - width,
                high=value + width,
                n=int(n),
                batch_size=size,
            )


def _effect(line: PanelLine, mark: Mark) -> Iterator[Mark]:
    """Yield the difference between two words of a condition, by test set."""
    sides: dict[str, Sample] = {}
    for candidate in line.cells:
        sides.setdefault(line.word(candidate), line.scores(candidate))
    first = sides.get(line.panel.first, NO_RUNS)
    second = sides.get(line.panel.second, NO_RUNS)
    differences = differences_by_seed(first, second)
    if differences:
        yield _over_seeds(line, mark, differences.values(), x=mark.test_set)


_MARKS = {"sweep": _sweep, "gain": _gain, "convergence": _convergence, "effect": _effect}


def published(
    paper: Paper | None, panel: Panel, test_set: TestSet, loss: str
) -> Iterator[tuple[float, float]]:
    """Yield the x and the value of the printed numbers that stand beside a line."""
    if panel.published is None or paper is None:
        return
    numbers = [
        number
        for number in paper.table(panel.published.table)
        if number.dataset == (test_set.printed or test_set.dataset)
        and number.loss == loss
        and number.protocol == test_set.protocol
        and number.backbone in ("", panel.backbone)
    ]
    if any(number.is_score for number in numbers):
        numbers = [number for number in numbers if number.metric == panel.metric]
    x_of_table = panel.published.at
    for number in numbers:
        if x_of_table is None and number.batch_size is not None:
            yield number.batch_size, number.points
        elif x_of_table is not None and number.batch_size == panel.batch_size:
            yield x_of_table, number.points


def swept_values(grid: Grid) -> pd.DataFrame:
    """Return the values of the sweeps that belong to a study, in the order of its figures.

    title, option  of the sweep: "SupAP's slope", "slope ρ"
    batch_size     NaN where it is swept
    claims         names of the papers' claims about the sweep
    value          as printed; "" for the ``loss`` that is drawn beside a sweep
    is_default     whether the other values are compared with this one, which then has no test
    score ..       in [0, 1]
    n ..           the test against the default of the sweep (``against_default``)

    A sweep with a single value that has runs is left out. One sweep is a family of Holm's.
    """
    sweeps = []
    for figure in sweep_figures():
        if figure.kind != "sweep" or grid.name not in figure.studies:
            continue
        for panel in figure.panels:
            for test_set in panel.test_sets:
                sweep = _swept(PanelLine(grid, panel, test_set, load_vocabulary()))
                if len(sweep) > 1:
                    sweeps.append(sweep)
    return pd.concat(sweeps, ignore_index=True) if sweeps else pd.DataFrame()


def _swept(line: PanelLine) -> pd.DataFrame:
    panel = line.panel
    samples = line.by_x()
    names = list(panel.words)
    unchanged = [candidate for candidate in line.cells if not candidate.changed]
    default = None
    if panel.default is not None:
        default = names.index(panel.default) if names else float(panel.default)
    elif unchanged:
        default = line.x(unchanged[0])
    labels = list(panel.words.values())
    swept = []
    for x, sample in samples.items():
        value = labels[int(x)] if labels else f"{x:g}"
        swept.append(({"loss": panel.loss, "value": value, "is_default": x == default}, sample))
    baseline = line.baseline()
    if baseline.n:
        swept.append(({"loss": panel.baseline, "value": "", "is_default": False}, baseline))

    def in_unit(sample: Sample) -> dict[int, float]:
        """Return the scores by seed in [0, 1]."""
        return {seed: value / 100 for seed, value in sample.by_seed.items()}

    scores = []
    rows = []
    for facts, sample in swept:
        by_seed = in_unit(sample)
        scores.append(by_seed)
        n, mean, sd, *_ = t_interval(by_seed.values())
        numbers = {"score": mean, "score_sd": sd, "score_n": n}
        rows.append({**facts, **numbers, "claims": panel.claims})
    if not rows:
        return pd.DataFrame()
    table = pd.DataFrame(rows).assign(
        title=panel.title,
        option=panel.label or panel.x.replace("_", " "),
        metric=panel.metric,
        batch_size=np.nan if panel.batch_size is None else panel.batch_size,
    )
    plain = NO_RUNS if default is None else samples.get(default, NO_RUNS)
    tests = against_default(scores, in_unit(plain), line.grid.study.comparison.alpha)
    return table.join(tests)
