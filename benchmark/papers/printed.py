"""What papers' tables and figures show of a study.

Tables: verdicts, or what else the runs measured. Figures: marks of our runs at each x, published
values beside them, and the values of sweeps with their paired tests against the default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from benchmark.core.records import CELL_COLUMNS, Cell, Setting
from benchmark.papers.matching import Candidate, candidates, match, stated_by
from benchmark.papers.paper import (
    all_figures,
    arranged_tables,
    paper_of,
    sweep_figures,
    vocabulary_of,
)
from benchmark.papers.quantities import COUNTS, GAP, TIMES, GapDecrease, costs_of
from benchmark.papers.schema import BATCH_SIZE, Panel, PublishedNumber, TestSet
from benchmark.papers.verdicts import NOT_RUN, VERDICT
from benchmark.papers.vocabulary import Condition, Vocabulary, load_vocabulary
from benchmark.runs.run_table import RunTable
from benchmark.stats.intervals import spread, t_interval
from benchmark.stats.paired import against_default
from benchmark.stats.samples import NO_RUNS, Sample, Samples, Score
from benchmark.study import Study
from benchmark.study.model import JOINT

# Instead of a verdict: a quoted value, a time, a quantity, another training set.
QUOTED = "quoted"
TIME = "time"
NO_SCORE = "no_score"
OTHER_DATA = "other_data"


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


# Of the test of a swept value, as ``against_default`` returns it.
_TESTED = [
    *("n", "difference", "ci_low", "ci_high", "p", "d_z", "detectable", "note", "p_holm"),
    "significant",
]


@dataclass(frozen=True)
class Printed:
    """What papers' tables, figures and sweeps show of a study.

    numbers   ``printed_numbers`` of the arranged tables
    sweeps    ``swept_values``
    against   values of each printed table, by its file's name, that follow the authors' code
              against the text
    """

    numbers: pd.DataFrame = field(default_factory=pd.DataFrame)
    figures: tuple[FigureMarks, ...] = ()
    sweeps: pd.DataFrame = field(default_factory=pd.DataFrame)
    against: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def printed_of(
    study: Study,
    table: RunTable,
    verdicts: pd.DataFrame,
    other: pd.DataFrame,
    gaps: Sequence[GapDecrease] = (),
) -> Printed:
    """Return them from runs, verdicts at both readings of the epoch, and analysed gaps."""
    grid = Grid(study, table, gaps)
    arranged = {
        f"{paper.source}_{name}": paper.table(name)
        for paper, name in arranged_tables(study.references.published)
    }
    asked = [number for numbers in arranged.values() for number in numbers]
    return Printed(
        printed_numbers(grid, asked, verdicts, other),
        tuple(figure_marks(grid)),
        swept_values(grid),
        {file: grid.against(numbers) for file, numbers in arranged.items()},
    )


def printed_numbers(
    grid: Grid,
    numbers: Iterable[PublishedNumber],
    verdicts: pd.DataFrame,
    other: pd.DataFrame,
) -> pd.DataFrame:
    """Return the columns of ``verdicts`` for each published number, by its source and line.

    ``other_mean`` and ``other_verdict`` are those at the ``other`` reading of the epoch. A number
    that no verdict judges has what else the runs measured, in points or the unit of the print, and
    one of the words above for a verdict.
    """
    key = ["source", "line"]
    beside = other[other["line"].notna()].set_index(key)
    words = (beside["verdict"] + " " + beside["direction"]).str.strip()
    there = pd.DataFrame({"other_mean": beside["ours_mean"], "other_verdict": words})
    judged = verdicts[verdicts["line"].notna() & (verdicts["verdict"] != NOT_RUN)].set_index(key)
    places = [(number.source, number.line) for number in numbers if number.is_score]
    judged = judged[judged.index.isin(places)].join(there)
    unjudged = []
    for number in numbers:
        if (number.source, number.line) not in judged.index:
            values, word = grid.measured(number)
            if not number.reproducible:
                word = QUOTED
            elif not values:
                word = NOT_RUN
            row = {
                "source": number.source,
                "line": number.line,
                "verdict": word,
                "ours_n": len(values),
                "ours_mean": np.mean(values) if values else np.nan,
                "ours_sd": spread(values) if len(values) > 1 else np.nan,
                "assumed": False,
            }
            unjudged.append(row)
    rows = pd.concat([judged, pd.DataFrame(unjudged, columns=[*key, *judged]).set_index(key)])
    texts = [name for name in judged if name not in VERDICT or VERDICT[name].kind == "text"]
    return rows.astype(dict.fromkeys(texts, object)).fillna(dict.fromkeys(texts, ""))


class Grid:
    """A study's runs and gaps, as printed numbers and figures are matched with them."""

    def __init__(self, study: Study, table: RunTable, gaps: Sequence[GapDecrease]):
        self.study = study
        self.gaps = gaps
        self.name = study.name.partition(JOINT)[0]
        self.samples = Samples(table)
        self.costs = costs_of(table)
        self.candidates = list(candidates(study).values())
        curves = table.test_scores("curve").groupby([*CELL_COLUMNS, "split", "metric"])
        self.curves = {(Cell.of(key[:-2]), *key[-2:]): rows for key, rows in curves}

    def against(self, numbers: Iterable[PublishedNumber]) -> tuple[str, ...]:
        """Return the values of the runs of these numbers that follow the code against the text."""
        found: dict[str, None] = {}
        for number in numbers:
            if number.reproducible:
                candidate = match(stated_by(number), self.candidates).candidate
                found |= dict.fromkeys(candidate.against if candidate else ())
        return tuple(found)

    def measured(self, number: PublishedNumber) -> tuple[list[float], str]:
        """Return what runs measured of a number without a verdict, and the word for that.

        For a score: of runs that differ from the print in the training set alone. For a gap: no
        value where the gaps come from several batch sizes, because the paper prints one number.
        """
        metric = number.metric
        if metric == GAP:
            gaps = [gap for gap in self.gaps if gap.dataset == number.dataset]
            if len({gap.batch_size for gap in gaps}) > 1:
                gaps = []
            return [gap.decrease for gap in gaps], NO_SCORE
        stated = stated_by(number)
        if number.is_score:
            if "training" not in number.means:
                return [], OTHER_DATA
            stated = stated.without("training")
        collected = [each for each in self.candidates if each.cell in self.samples.statuses]
        found = match(stated, collected, self.samples.splits)
        if found.candidate is None:
            return [], NOT_RUN
        cell = found.candidate.cell
        if number.is_score:
            sample = self.samples.sample(cell, found.split, metric)
            return list(sample.by_seed.values()), OTHER_DATA
        if metric not in (*TIMES, *COUNTS):
            return [], NO_SCORE
        costs = self.costs.get((cell, metric), {})
        word = TIME if metric in TIMES else NO_SCORE
        return list(costs.values()), word


class PanelLine:
    """One line of a panel: a loss on a test set, and what the x axis varies."""

    def __init__(self, grid: Grid, panel: Panel, test_set: TestSet, words: Vocabulary):
        self.grid = grid
        self.panel = panel
        self.test_set = test_set
        x = panel.parameter or panel.x
        names = [] if x in ("", BATCH_SIZE) else x.split(" - ")
        stated = words.requirements(dict.fromkeys(names, ""))
        self.varied = tuple(each.condition for each in stated)

    @cached_property
    def cells(self) -> list[Candidate]:
        """The cells of the panel's loss, those that vary something first."""
        return sorted(self.of(self.panel.loss, self.varied), key=lambda each: not each.changed)

    def of(self, loss: str, varied: tuple[Condition, ...] = ()) -> list[Candidate]:
        """Return the cells of a loss that differ from recipe and loss in ``varied`` alone."""

        def is_varied(column: str) -> bool:
            return any(condition.covers(column) for condition in varied)

        return [
            each
            for each in self.grid.candidates
            if each.cell.base_loss == loss
            and each.cell.dataset == self.test_set.dataset
            and self.panel.batch_size in (None, each.cell.batch_size)
            and self.panel.backbone == each.backbone
            and all(map(is_varied, each.changed))
        ]

    def place(self, candidate: Candidate) -> Score:
        """Return where the scores of a cell stand: cell, split and metric."""
        splits = self.grid.samples.splits.get(candidate.cell, {"test"})
        only = "test" if "test" in splits else min(splits)
        return candidate.cell, self.test_set.split or only, self.panel.metric

    def scores(self, candidate: Candidate) -> Sample:
        """Return the headline scores of a cell, or ``NO_RUNS``."""
        return self.grid.samples.sample(*self.place(candidate))

    def by_x(self) -> dict[float, Sample]:
        """Return the scores of the first cell at each x that has any, in order of x."""
        found: dict[float, Sample] = {}
        for candidate in self.cells:
            x = self.x(candidate)
            sample = self.scores(candidate)
            if x is not None and sample.n:
                found.setdefault(x, sample)
        return dict(sorted(found.items()))

    def baseline(self) -> Sample:
        """Return the scores of the panel's baseline at its batch size, or ``NO_RUNS``."""
        plain = self.of(self.panel.baseline)
        return self.scores(plain[0]) if plain else NO_RUNS

    def word(self, candidate: Candidate) -> str:
        """Return the word for what a cell has of the one condition that is varied."""
        condition = self.varied[0]
        return condition.word(candidate.settings.get(condition.column))

    def x(self, candidate: Candidate) -> float | None:
        """Return the x of a cell, or None for one that has none."""
        if not self.varied:
            return candidate.cell.batch_size
        if self.panel.words:
            word = self.word(candidate)
            return list(self.panel.words).index(word) if word in self.panel.words else None
        values = [candidate.settings.get(each.column) for each in self.varied]
        numbers = [each for each in values if isinstance(each, int | float)]
        return round(numbers[0] - sum(numbers[1:]), 10) if len(numbers) == len(values) else None


def figure_marks(grid: Grid) -> list[FigureMarks]:
    """Return the figures of a study: by its name, or because its grid asks for their runs."""
    found = []
    for figure in all_figures():
        words = vocabulary_of(figure.source)
        panels = [
            [PanelLine(grid, panel, test_set, words) for test_set in panel.test_sets]
            for panel in figure.panels
        ]
        axis: Callable[[PanelLine, Candidate], Any] = (
            PanelLine.word if figure.kind == "effect" else PanelLine.x
        )
        settings = max(
            len({axis(line, each) for line in lines for each in line.cells} - {None})
            for lines in panels
        )
        if grid.name not in figure.studies and not (settings > 1 and figure.source):
            continue
        marks: list[Mark] = []
        for number, lines in enumerate(panels):
            for test_set, line in enumerate(lines):
                panel = line.panel
                mark = Mark(number, test_set, panel.loss, OURS, None, np.nan)
                marks += _MARKS[figure.kind](line, mark)
                for loss in filter(None, (panel.loss, panel.baseline)):
                    for x, value in published(figure.source, panel, line.test_set, loss):
                        at = x if loss == panel.loss else None
                        marks.append(replace(mark, loss=loss, side=PUBLISHED, x=at, value=value))
        found.append(FigureMarks(figure.name, settings, tuple(marks)))
    return found


def _over_seeds(line: PanelLine, mark: Mark, values: Iterable[float], **facts: Any) -> Mark:
    found = t_interval(list(values), 1 - line.grid.study.comparison.alpha)
    low, high = (None if np.isnan(end) else end for end in (found.low, found.high))
    return replace(mark, value=found.mean, low=low, high=high, n=found.n, **facts)


def _sweep(line: PanelLine, mark: Mark) -> Iterator[Mark]:
    for x, sample in line.by_x().items():
        yield _over_seeds(line, mark, sample.by_seed.values(), x=x)
    if (beside := line.baseline()).n:
        yield _over_seeds(line, mark, beside.by_seed.values(), loss=line.panel.baseline)


def _gain(line: PanelLine, mark: Mark) -> Iterator[Mark]:
    """Yield the gain of one loss over another in percent of the latter, by batch size."""

    def by_setting(loss: str) -> dict[tuple[Setting, int], Mapping[int, float]]:
        return {
            (each.cell.setting, each.cell.batch_size): line.scores(each).by_seed
            for each in line.of(loss)
        }

    ours = by_setting(line.panel.loss)
    theirs = by_setting(line.panel.loss_against)
    for key in sorted(ours.keys() & theirs.keys(), key=lambda key: key[1]):
        first = ours[key]
        second = theirs[key]
        seeds = sorted(seed for seed in first.keys() & second.keys() if second[seed] > 0)
        if seeds:
            gains = [100 * (first[seed] - second[seed]) / second[seed] for seed in seeds]
            yield _over_seeds(line, mark, gains, x=key[1])


def _convergence(line: PanelLine, mark: Mark) -> Iterator[Mark]:
    """Yield the score after each epoch by batch size, with a band of one standard deviation."""
    by_size = {each.cell.batch_size: each for each in line.of(line.panel.loss)}
    for size, candidate in sorted(by_size.items()):
        curve = line.grid.curves.get(line.place(candidate))
        if curve is None:
            continue
        epochs = curve.groupby("epoch")["value"].agg(["mean", "std", "size"]).fillna(0.0)
        for epoch, mean, sd, n in epochs.itertuples():
            ends = {"low": 100 * mean - 100 * sd, "high": 100 * mean + 100 * sd, "n": int(n)}
            yield replace(mark, x=epoch, value=100 * mean, batch_size=size, **ends)


def _effect(line: PanelLine, mark: Mark) -> Iterator[Mark]:
    sides: dict[str, Mapping[int, float]] = {}
    for candidate in line.cells:
        sides.setdefault(line.word(candidate), line.scores(candidate).by_seed)
    first, second = (sides.get(word, {}) for word in (line.panel.first, line.panel.second))
    if seeds := sorted(first.keys() & second.keys()):
        gaps = [first[seed] - second[seed] for seed in seeds]
        yield _over_seeds(line, mark, gaps, x=mark.test_set)


_MARKS = {"sweep": _sweep, "gain": _gain, "convergence": _convergence, "effect": _effect}


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


def swept_values(grid: Grid) -> pd.DataFrame:
    """Return the values of the sweeps that belong to a study, in the order of its figures.

    title, option  of the sweep: "SupAP's slope", "slope ρ"
    batch_size     NaN where it is swept
    claims         names of the papers' claims about the sweep
    value          as printed; "" for the ``loss`` that is drawn beside a sweep
    is_default     whether the others are compared with it: then it has no test
    score ..       in [0, 1]; then the test against the default of the sweep

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
    default = next((line.x(each) for each in line.cells if not each.changed), None)
    if panel.default is not None:
        default = names.index(panel.default) if names else float(panel.default)
    words = list(panel.words.values())
    entries = []
    for x, sample in samples.items():
        value = words[int(x)] if words else f"{x:g}"
        entries.append((panel.loss, value, x == default, sample))
    if (beside := line.baseline()).n:
        entries.append((panel.baseline, "", False, beside))
    if not entries:
        return pd.DataFrame()
    plain = NO_RUNS if default is None else samples.get(default, NO_RUNS)
    losses, values, defaults, swept = zip(*entries, strict=True)

    def in_unit(sample: Sample) -> dict[int, float]:
        """Return the scores by seed in [0, 1]."""
        return {seed: value / 100 for seed, value in sample.by_seed.items()}

    scores = [in_unit(sample) for sample in swept]
    summaries = [t_interval(by_seed.values()) for by_seed in scores]
    rows = pd.DataFrame(
        {
            "loss": losses,
            "value": values,
            "is_default": defaults,
            "score": [each.mean for each in summaries],
            "score_sd": [each.sd for each in summaries],
            "score_n": [each.n for each in summaries],
            "title": panel.title,
            "option": panel.label or panel.x.replace("_", " "),
            "metric": panel.metric,
            "batch_size": np.nan if panel.batch_size is None else panel.batch_size,
            "claims": [panel.claims] * len(entries),
        }
    )
    tests = against_default(scores, in_unit(plain), line.grid.study.comparison.alpha)
    return rows.join(tests[_TESTED])
