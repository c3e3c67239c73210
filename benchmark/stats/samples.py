"""The scores of each cell as samples over seeds, and spreads shared by sister cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pandas as pd

from benchmark.core.records import CELL_COLUMNS, Cell
from benchmark.runs.table import RunTable, cell_from
from benchmark.stats.intervals import spread
from benchmark.stats.moderation import moderate

Key = TypeVar("Key", bound=Hashable)
ROUNDING = 1e-10  # points: scores that differ by less are equal


@dataclass(frozen=True)
class Spread:
    """The standard deviation of one run, or of one difference by seed, in points.

    own, own_df    of the cell alone; NaN and 0 below two runs, and where all runs are equal
    sd, df         moderated; NaN and 0 where neither the cell nor its sisters have a spread
    lent, lent_df  pooled over the sisters, and the degrees of freedom that they lend
    """

    own: float = np.nan
    own_df: float = 0.0
    sd: float = np.nan
    df: float = 0.0
    lent: float = np.nan
    lent_df: float = 0.0

    @property
    def plain(self) -> Spread:
        """What the cell says of itself, without its sisters."""
        return Spread(self.own, self.own_df, self.own, self.own_df)


UNKNOWN_SPREAD = Spread()


def shared_spreads(
    cells: Mapping[Key, tuple[float, int]], sisters: Callable[[Key], Hashable]
) -> dict[Key, Spread]:
    """Return the spread of each cell, of which standard deviation and number of runs are given.

    Cells are sisters where ``sisters`` returns the same.
    """
    groups: dict[Hashable, list[Key]] = {}
    for key in cells:
        groups.setdefault(sisters(key), []).append(key)
    found: dict[Key, Spread] = {}
    for keys in groups.values():
        sd, n = np.array([cells[key] for key in keys], float).T
        sd = np.where(n >= 2, np.where(sd > ROUNDING, sd, 0.0), np.nan)
        shared = moderate(sd**2, np.maximum(n - 1, 0))
        known = (shared.variance > 0) & (shared.df > 0)
        columns = zip(
            np.where(sd > 0, sd, np.nan),
            np.where(sd > 0, n - 1, 0),
            np.where(known, np.sqrt(np.where(known, shared.variance, 0)), np.nan),
            np.where(known, shared.df, 0),
            np.sqrt(shared.prior_variance),
            shared.prior_df,
            strict=True,
        )
        for key, numbers in zip(keys, columns, strict=True):
            found[key] = Spread(*map(float, numbers))
    return {key: found[key] for key in cells}


Score = tuple[Cell, str, str]  # cell, split and metric
VERSIONS = ("spec_digest", "code_version", "platform")


@dataclass(frozen=True)
class Sample:
    """Scores by seed, in percentage points, and the distinct versions behind them.

    ``diverged`` runs have no score.
    """

    by_seed: Mapping[int, float]
    versions: Mapping[str, tuple[str, ...]]
    diverged: int = 0

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


def sample(rows: pd.DataFrame) -> Sample:
    """Return the sample of ``rows``, one a run: seed, value (in [0, 1]) and ``VERSIONS``."""
    values = 100 * rows["value"].to_numpy(float)
    return Sample(
        dict(zip(map(int, rows["seed"]), map(float, values), strict=True)),
        {name: tuple(sorted(set(rows[name].astype(str)))) for name in VERSIONS},
    )


def differences_by_seed(first: Sample, second: Sample) -> dict[int, float]:
    """Return first - second under each seed that both have.

    A run and its frozen counterpart share split, initial weights, batches and augmentation, so that
    what the seed adds to both drops out of their difference.
    """
    common = first.by_seed.keys() & second.by_seed.keys()
    return {seed: first.by_seed[seed] - second.by_seed[seed] for seed in sorted(common)}


class Samples:
    """All samples of a study under one selection rule, and the statuses of its runs."""

    def __init__(self, table: RunTable, selection: str = "last"):
        self.selection = selection
        self.statuses: Mapping[Cell, Counter[str]] = table.statuses()
        self.splits: dict[Cell, set[str]] = {}
        self._samples: dict[Score, Sample] = {}
        versions = table.runs[["run_id", *VERSIONS]]
        scores = table.test_scores(selection).merge(versions, on="run_id")
        for key, rows in scores.groupby([*CELL_COLUMNS, "split", "metric"]):
            *columns, split, metric = map(str, key)
            cell = cell_from(columns)
            self._samples[cell, split, metric] = sample(rows)
            self.splits.setdefault(cell, set()).add(split)
        self._spreads = shared_spreads(
            {key: (each.sd, each.n) for key, each in self._samples.items()}, place
        )

    @property
    def metrics(self) -> set[str]:
        """The metrics that some run has."""
        return {metric for _, _, metric in self._samples}

    def sample(self, cell: Cell, split: str, metric: str) -> Sample:
        """Return the scores of a cell; ``NO_RUNS`` when no finished run has them."""
        return self._samples.get((cell, split, metric), NO_RUNS)

    def spread(self, cell: Cell, split: str, metric: str) -> Spread:
        """Return the spread of one run of a cell, moderated with those of its sisters."""
        return self._spreads.get((cell, split, metric), UNKNOWN_SPREAD)


def place(key: Score) -> tuple[str, str, str, str]:
    """Return what sister cells have in common: they differ in loss and batch size alone."""
    cell, split, metric = key
    return (cell.dataset, cell.setting.label, split, metric)
