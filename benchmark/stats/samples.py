"""The scores of each cell as samples over seeds, and spreads pooled over sister cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmark.core.cells import Cell
from benchmark.runs.table import CELL_COLUMNS, RunTable, cell_from
from benchmark.stats.intervals import spread

VERSIONS = ("spec_digest", "code_version", "platform")


@dataclass(frozen=True)
class Sample:
    """Scores by seed, in percentage points, and the distinct versions behind them."""

    by_seed: Mapping[int, float]
    versions: Mapping[str, tuple[str, ...]]

    @property
    def n(self) -> int:
        """The number of runs."""
        return len(self.by_seed)

    @property
    def mean(self) -> float:
        """The mean over seeds; NaN without any."""
        return float(np.mean(list(self.by_seed.values()))) if self.n else np.nan

    @property
    def sd(self) -> float:
        """The standard deviation; NaN below two runs."""
        return spread(self.by_seed.values()) if self.n > 1 else np.nan


NO_RUNS = Sample({}, {})


@dataclass(frozen=True)
class PooledSpread:
    """A spread over several cells, and its degrees of freedom; NaN where no cell has two runs."""

    sd: float = np.nan
    df: float = np.nan


def sample(rows: pd.DataFrame) -> Sample:
    """Return the sample of ``rows``, one a run: seed, value (in [0, 1]) and ``VERSIONS``."""
    values = 100 * rows["value"].to_numpy(float)
    return Sample(
        dict(zip(map(int, rows["seed"]), map(float, values), strict=True)),
        {name: tuple(sorted(set(rows[name].astype(str)))) for name in VERSIONS},
    )


@dataclass(frozen=True)
class Paired:
    """Number and spread of the differences by seed; NaN where the samples are two groups."""

    n: float = np.nan
    sd: float = np.nan


def paired_spread(first: Sample, second: Sample) -> Paired:
    """Return the spread of the differences, when both have the same two seeds or more.

    A run and its frozen counterpart share split, initial weights, batches and augmentation, so that
    what the seed adds to both drops out of their difference.
    """
    if first.n < 2 or first.by_seed.keys() != second.by_seed.keys():
        return Paired()
    differences = [first.by_seed[seed] - value for seed, value in sorted(second.by_seed.items())]
    return Paired(len(differences), spread(differences))


class Samples:
    """All samples of a study under one selection rule, and the statuses of its runs."""

    def __init__(self, table: RunTable, selection: str = "last"):
        self.selection = selection
        self.statuses: Mapping[Cell, Counter[str]] = table.statuses()
        self.splits: dict[Cell, set[str]] = {}
        self._samples: dict[tuple[Cell, str, str], Sample] = {}
        versions = table.runs[["run_id", *VERSIONS]]
        scores = table.test_scores(selection).merge(versions, on="run_id")
        for key, rows in scores.groupby([*CELL_COLUMNS, "split", "metric"]):
            *columns, split, metric = map(str, key)
            cell = cell_from(columns)
            self._samples[cell, split, metric] = sample(rows)
            self.splits.setdefault(cell, set()).add(split)
        groups: dict[tuple[str, str, str, str], list[Sample]] = {}
        for (cell, split, metric), each in self._samples.items():
            if each.n >= 2:
                key = (cell.dataset, cell.setting.label, split, metric)
                groups.setdefault(key, []).append(each)
        self._pooled = {key: pooled_spread(group) for key, group in groups.items()}

    def sample(self, cell: Cell, split: str, metric: str) -> Sample:
        """Return the scores of a cell; ``NO_RUNS`` when no finished run has them."""
        return self._samples.get((cell, split, metric), NO_RUNS)

    def pooled(self, cell: Cell, split: str, metric: str) -> PooledSpread:
        """Return the spread pooled over losses and batch sizes of the cell's dataset and setting.

        It assumes that they share one spread, and serves cells that have none of their own.
        """
        key = (cell.dataset, cell.setting.label, split, metric)
        return self._pooled.get(key, PooledSpread())


def pooled_spread(group: Iterable[Sample]) -> PooledSpread:
    """Return the spread that samples of two runs or more have in common."""
    terms = [((each.n - 1) * each.sd**2, each.n - 1) for each in group]
    squares, df = (sum(column) for column in zip(*terms, strict=True))
    return PooledSpread(float(np.sqrt(squares / df)), df)
