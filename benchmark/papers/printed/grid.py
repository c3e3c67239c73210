"""The cells of a study and their scores, as the panels of figures ask for them."""

from collections.abc import Collection

import pandas as pd

from benchmark.core.cells import CELL_COLUMNS
from benchmark.papers.arrangements import BATCH_SIZE, Panel, TestSet
from benchmark.papers.candidates import Candidate, Candidates
from benchmark.papers.vocabulary import Condition, Vocabulary
from benchmark.runs.table import RunTable, cell_from
from benchmark.stats.samples import NO_RUNS, Sample, Samples
from benchmark.study import Study


class Grid:
    """The candidates of a study, their scores in percent, and their curves."""

    def __init__(self, study: Study, table: RunTable, candidates: Candidates):
        self.study = study
        self.samples = Samples(table)
        self._candidates = list(candidates.values())
        curves = table.test_scores("curve").groupby([*CELL_COLUMNS, "split", "metric"])
        self._curves = {(cell_from(key[:-2]), *key[-2:]): rows for key, rows in curves}

    def candidates(
        self, panel: Panel, test_set: TestSet, loss: str, varied: tuple[Condition, ...] = ()
    ) -> list[Candidate]:
        """Return the cells of a loss that make a line of a panel, those that vary something first.

        They differ from the recipe and the loss as they stand in what ``varied`` covers alone.
        """
        found = [
            each
            for each in self._candidates
            if each.cell.base_loss == loss
            and each.cell.dataset == test_set.dataset
            and panel.batch_size in (None, each.cell.batch_size)
            and panel.backbone == each.backbone
            and all(any(each_.covers(column) for each_ in varied) for column in each.changed)
        ]
        return sorted(found, key=lambda each: not each.changed)

    def scores(self, candidate: Candidate, test_set: TestSet, metric: str) -> Sample:
        """Return the headline scores of a cell on a test set, or ``NO_RUNS``."""
        splits = self.samples.splits.get(candidate.cell, set())
        split = test_set.split or only_split(splits)
        return self.samples.sample(candidate.cell, split, metric)

    def curve(self, candidate: Candidate, test_set: TestSet, metric: str) -> pd.DataFrame | None:
        """Return the scores in [0, 1] after each evaluated epoch, one row a run and epoch."""
        splits = {str(key[1]) for key in self._curves if key[0] == candidate.cell}
        split = test_set.split or only_split(splits)
        return self._curves.get((candidate.cell, split, metric))


class Axis:
    """The x axis of a panel: what it varies, and where a cell stands on it."""

    def __init__(self, panel: Panel, words: Vocabulary):
        self._panel = panel
        x = panel.parameter or panel.x
        self._names = [] if x in ("", BATCH_SIZE) else x.split(" - ")
        stated = words.requirements(dict.fromkeys(self._names, ""))
        self.varied = tuple(each.condition for each in stated)

    def word(self, candidate: Candidate) -> str:
        """Return the word for what a cell has of the one condition that is varied."""
        condition = self.varied[0]
        return condition.word(candidate.settings.get(condition.column))

    def x(self, candidate: Candidate) -> float | None:
        """Return the x of a cell, or None for one that has none."""
        if not self._names:
            return candidate.cell.batch_size
        values = [candidate.settings.get(each.column) for each in self.varied]
        if self._panel.words:
            word = self.word(candidate)
            return list(self._panel.words).index(word) if word in self._panel.words else None
        numbers = [each for each in values if isinstance(each, int | float)]
        if len(numbers) < len(values):
            return None
        return round(numbers[0] - sum(numbers[1:]), 10)

    def text(self, x: float) -> str:
        """Return an x as it is printed: "0.05", "random classes"."""
        return list(self._panel.words.values())[int(x)] if self._panel.words else f"{x:g}"

    def default(self, candidates: list[Candidate]) -> float | None:
        """Return the x to compare with: the panel's default, else that of the plain cell."""
        if self._panel.default is not None:
            if self._panel.words:
                return list(self._panel.words).index(self._panel.default)
            return float(self._panel.default)
        plain = [self.x(each) for each in candidates if not each.changed]
        return plain[0] if plain else None


def only_split(splits: Collection[str]) -> str:
    """Return "test", or the first split of those without it."""
    return "test" if "test" in splits or not splits else sorted(splits)[0]


def by_x(grid: Grid, panel: Panel, test_set: TestSet, axis: Axis) -> dict[float, Sample]:
    """Return the scores of the first cell at each x that has any, in order of x."""
    found: dict[float, Sample] = {}
    for candidate in grid.candidates(panel, test_set, panel.loss, axis.varied):
        x, sample = axis.x(candidate), grid.scores(candidate, test_set, panel.metric)
        if x is not None and sample.n:
            found.setdefault(x, sample)
    return {x: found[x] for x in sorted(found)}


def plain_scores(grid: Grid, panel: Panel, test_set: TestSet, loss: str) -> Sample:
    """Return the scores of a loss as it stands, at the panel's batch size, or ``NO_RUNS``."""
    plain = grid.candidates(panel, test_set, loss)
    return grid.scores(plain[0], test_set, panel.metric) if plain else NO_RUNS
