"""The lines of panels: which cells of a study make one, where they stand, and their scores."""

from collections.abc import Collection

import pandas as pd

from benchmark.core.records import CELL_COLUMNS
from benchmark.papers.arrangements import BATCH_SIZE, Panel, TestSet
from benchmark.papers.candidates import Candidate, Candidates
from benchmark.papers.vocabulary import Condition, Vocabulary
from benchmark.runs.table import RunTable, cell_from
from benchmark.stats.samples import NO_RUNS, Sample, Samples
from benchmark.study import Study


class Grid:
    """The candidates of a study, their scores in percent, and their curves in [0, 1]."""

    def __init__(self, study: Study, table: RunTable, candidates: Candidates):
        self.study = study
        self.samples = Samples(table)
        self.candidates = list(candidates.values())
        curves = table.test_scores("curve").groupby([*CELL_COLUMNS, "split", "metric"])
        self.curves = {(cell_from(key[:-2]), *key[-2:]): rows for key, rows in curves}


class Line:
    """One line of a panel: a loss on a test set, and what the x axis varies."""

    def __init__(self, grid: Grid, panel: Panel, test_set: TestSet, words: Vocabulary):
        self.grid, self.panel, self.test_set = grid, panel, test_set
        x = panel.parameter or panel.x
        self._names = [] if x in ("", BATCH_SIZE) else x.split(" - ")
        stated = words.requirements(dict.fromkeys(self._names, ""))
        self.varied = tuple(each.condition for each in stated)

    @property
    def cells(self) -> list[Candidate]:
        """The cells of the panel's loss, those that vary something first."""
        return sorted(self._cells(self.panel.loss, self.varied), key=lambda each: not each.changed)

    def plain(self, loss: str) -> list[Candidate]:
        """Return the cells of a loss under the recipe and the loss as they stand."""
        return self._cells(loss, ())

    def _cells(self, loss: str, varied: tuple[Condition, ...]) -> list[Candidate]:
        return [
            each
            for each in self.grid.candidates
            if each.cell.base_loss == loss
            and each.cell.dataset == self.test_set.dataset
            and self.panel.batch_size in (None, each.cell.batch_size)
            and self.panel.backbone == each.backbone
            and all(any(one.covers(column) for one in varied) for column in each.changed)
        ]

    def scores(self, candidate: Candidate) -> Sample:
        """Return the headline scores of a cell, or ``NO_RUNS``."""
        split = self._split(self.grid.samples.splits.get(candidate.cell, set()))
        return self.grid.samples.sample(candidate.cell, split, self.panel.metric)

    def curve(self, candidate: Candidate) -> pd.DataFrame | None:
        """Return the scores in [0, 1] after each evaluated epoch, one row a run and epoch."""
        curves = self.grid.curves
        split = self._split({str(key[1]) for key in curves if key[0] == candidate.cell})
        return curves.get((candidate.cell, split, self.panel.metric))

    def _split(self, splits: Collection[str]) -> str:
        only = "test" if "test" in splits or not splits else sorted(splits)[0]
        return self.test_set.split or only

    def by_x(self) -> dict[float, Sample]:
        """Return the scores of the first cell at each x that has any, in order of x."""
        found: dict[float, Sample] = {}
        for candidate in self.cells:
            x, sample = self.x(candidate), self.scores(candidate)
            if x is not None and sample.n:
                found.setdefault(x, sample)
        return {x: found[x] for x in sorted(found)}

    def baseline(self) -> Sample:
        """Return the scores of the panel's baseline at its batch size, or ``NO_RUNS``."""
        plain = self.plain(self.panel.baseline)
        return self.scores(plain[0]) if plain else NO_RUNS

    def word(self, candidate: Candidate) -> str:
        """Return the word for what a cell has of the one condition that is varied."""
        condition = self.varied[0]
        return condition.word(candidate.settings.get(condition.column))

    def x(self, candidate: Candidate) -> float | None:
        """Return the x of a cell, or None for one that has none."""
        if not self._names:
            return candidate.cell.batch_size
        values = [candidate.settings.get(each.column) for each in self.varied]
        if self.panel.words:
            word = self.word(candidate)
            return list(self.panel.words).index(word) if word in self.panel.words else None
        numbers = [each for each in values if isinstance(each, int | float)]
        if len(numbers) < len(values):
            return None
        return round(numbers[0] - sum(numbers[1:]), 10)

    def text(self, x: float) -> str:
        """Return an x as it is printed: "0.05", "random classes"."""
        return list(self.panel.words.values())[int(x)] if self.panel.words else f"{x:g}"

    def default(self) -> float | None:
        """Return the x to compare with: the panel's default, else that of the plain cell."""
        if self.panel.default is not None:
            if self.panel.words:
                return list(self.panel.words).index(self.panel.default)
            return float(self.panel.default)
        return next((self.x(each) for each in self.cells if not each.changed), None)
