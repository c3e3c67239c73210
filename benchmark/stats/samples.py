"""The scores of each cell as a sample over seeds, and the spread that sister cells share.

Sister cells are the losses and batch sizes of one dataset, setting, split and metric. Two to five
runs are too few to estimate a variance. So the variance of a cell is averaged with the pooled
variance of its sisters (Smyth 2004, equation 6). The pooled variance gets a limited weight: at most
``LIMIT`` degrees of freedom, at most ``TIMES`` the degrees of freedom of the cell, at most
``SHARE`` of the degrees of freedom of the sisters, and at most 2 / CV^2 of the variances.
docs/background/statistics.md has the formula and the reasons.

A cell that Cochran's outlier test (ISO 5725-2, in 't Lam's leave-one-out form of 2010) rejects
keeps its own variance, if the variances of the other cells agree. The pooled variance is then
computed without this cell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from benchmark.core.records import CELL_COLUMNS, Cell
from benchmark.stats.intervals import Floats, spread

if TYPE_CHECKING:
    import pandas as pd

    from benchmark.runs.run_table import RunTable

LIMIT = 5.0
TIMES = 2.0
SHARE = 0.25
OUTLIER = 0.001  # level of Cochran's test over all cells
ROUNDING = 1e-10  # points: scores that differ by less are equal
VERSIONS = ("spec_digest", "code_version", "platform", "kernels", "processor")
Key = TypeVar("Key", bound=Hashable)
Score = tuple[Cell, str, str]  # cell, split and metric
BySeed = Mapping[int, float]


class Moderated(NamedTuple):
    """Moderated variances with their degrees of freedom, and the pooled variances behind them.

    The arrays have one shape. ``variance`` is NaN if neither the cell nor its sisters have a
    variance. ``prior_df`` is 0 if the pooled variance has no weight.
    """

    variance: Floats
    df: Floats
    prior_variance: Floats
    prior_df: Floats


def moderate(
    variance: ArrayLike, df: ArrayLike, *, limit: float = LIMIT, times: float = TIMES
) -> Moderated:
    """Return the moderated variances of sister cells, which lie along the last axis.

    A cell with one run has no variance: its ``df`` is 0, or its variance is NaN. The cell gets the
    pooled variance of its sisters. With ``limit`` 0 every cell keeps its own variance, as in the
    plain t test.
    """
    variance, df = np.broadcast_arrays(variance, df)
    measured = np.isfinite(variance) & (df > 0)
    variance = np.where(measured, variance, 0.0)
    df = np.where(measured, df, 0.0)
    alike = _alike(variance, df, measured)
    kept = _without_outliers(variance, df, measured)
    alike_without = _alike(variance, df, kept)
    has_outlier = (kept != measured).any(axis=-1, keepdims=True)
    drop = has_outlier & (alike_without >= limit)
    lenders = np.where(drop, kept, measured)
    alike = np.where(drop, alike_without, alike)

    prior_variance, sisters_df = _pooled_over_others(variance, df, lenders)
    most = np.minimum(limit, times * np.maximum(df, 1.0))
    prior_df = np.minimum(np.minimum(most, alike), SHARE * sisters_df)
    prior_df = np.where(measured & ~lenders, 0.0, prior_df)
    total = prior_df + df
    with np.errstate(invalid="ignore", divide="ignore"):
        borrowed = np.where(prior_df > 0, prior_df * prior_variance, 0.0)
        moderated = (borrowed + df * variance) / total
    return Moderated(moderated, total, prior_variance, prior_df)


def _alike(variance: Floats, df: Floats, cells: np.ndarray) -> Floats:
    """Return 2 / CV^2 of the true variances of ``cells``, by moments; infinite if they look equal.

    For equal degrees of freedom d, E (s^2 / mean - 1)^2 is (2 / d) (1 + CV^2) + CV^2.
    """
    weight = np.where(cells, df, 0.0)
    total = weight.sum(axis=-1, keepdims=True)
    count = cells.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (weight * variance).sum(axis=-1, keepdims=True) / total
        relative = variance / mean - 1
        squares = (weight * relative**2).sum(axis=-1, keepdims=True)
        excess = squares * count / (count - 1) - 2 * count
        cv2 = excess / (2 * count + total)
        return np.where(cv2 > 0, 2 / cv2, np.inf)


def _without_outliers(variance: Floats, df: Floats, cells: np.ndarray) -> np.ndarray:
    """Return ``cells`` without outliers of the variance, which are taken out one by one."""
    while True:
        pooled, rest_df = _pooled_over_others(variance, df, cells)
        count = cells.sum(axis=-1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            p = np.where(cells, special.fdtrc(df, rest_df, variance / pooled), 1.0)
        lowest = p == p.min(axis=-1, keepdims=True)
        rejected = p < OUTLIER / np.maximum(count, 1)
        out = cells & lowest & rejected & (count > 2)
        if not out.any():
            return cells
        cells = cells & ~out


def _pooled_over_others(variance: Floats, df: Floats, cells: np.ndarray) -> tuple[Floats, Floats]:
    """Return, for each cell, the pooled variance of the other ``cells`` (or NaN) and its df."""
    weight = np.where(cells, df, 0.0)
    squares = weight * variance
    rest_df = weight.sum(axis=-1, keepdims=True) - weight
    with np.errstate(invalid="ignore", divide="ignore"):
        # Sums of others by difference may fall below zero by rounding.
        rest = squares.sum(axis=-1, keepdims=True) - squares
        pooled = np.maximum(rest, 0.0) / rest_df
    return np.where(rest_df > 0, pooled, np.nan), rest_df


@dataclass(frozen=True)
class Spread:
    """The standard deviation of one run, or of one difference by seed, in points.

    own, own_df    of the cell alone; NaN and 0 below two runs, and if all runs are equal
    sd, df         moderated; NaN and 0 if neither the cell nor its sisters have a spread
    lent, lent_df  pooled over the sisters, and the degrees of freedom that they lend
    """

    own: float = np.nan
    own_df: float = 0.0
    sd: float = np.nan
    df: float = 0.0
    lent: float = np.nan
    lent_df: float = 0.0


UNKNOWN_SPREAD = Spread()


def shared_spreads(
    cells: Mapping[Key, tuple[float, int]], sisters: Callable[[Key], Hashable]
) -> dict[Key, Spread]:
    """Return the spread of each cell from its standard deviation and number of runs.

    Two cells are sisters if ``sisters`` returns the same value for both.
    """
    groups: dict[Hashable, list[Key]] = {}
    for key in cells:
        groups.setdefault(sisters(key), []).append(key)
    spreads: dict[Key, Spread] = {}
    for keys in groups.values():
        sd, n = np.array([cells[key] for key in keys], float).T
        sd = np.where(sd > ROUNDING, sd, 0.0)
        sd = np.where(n >= 2, sd, np.nan)
        variance, df, prior_variance, prior_df = moderate(sd**2, np.maximum(n - 1, 0))
        variance = np.where((variance > 0) & (df > 0), variance, np.nan)
        columns = (
            np.where(sd > 0, sd, np.nan),
            np.where(sd > 0, n - 1, 0),
            np.sqrt(variance),
            np.where(np.isnan(variance), 0, df),
            np.sqrt(prior_variance),
            prior_df,
        )
        for key, *numbers in zip(keys, *columns, strict=True):
            spreads[key] = Spread(*map(float, numbers))
    return spreads


@dataclass(frozen=True)
class Sample:
    """Scores by seed, in percentage points, and the distinct versions behind them.

    ``diverged`` counts the runs without a score. ``spread`` is the spread of one run, shared with
    the sister cells.
    """

    by_seed: BySeed
    versions: Mapping[str, tuple[str, ...]]
    diverged: int = 0
    spread: Spread = UNKNOWN_SPREAD

    @property
    def n(self) -> int:
        """The number of runs."""
        return len(self.by_seed)

    @property
    def mean(self) -> float:
        """The mean over seeds; NaN without a run."""
        if not self.n:
            return np.nan
        return float(np.mean(list(self.by_seed.values())))

    @property
    def sd(self) -> float:
        """The standard deviation; NaN below two runs."""
        return spread(self.by_seed.values()) if self.n > 1 else np.nan


NO_RUNS = Sample({}, {})


def differences_by_seed(first: Sample, second: Sample) -> dict[int, float]:
    """Return first - second under each seed that both have.

    A run and its frozen counterpart share split, initial weights, batches and augmentation. So the
    effect of the seed drops out of their difference.
    """
    ours = first.by_seed
    theirs = second.by_seed
    return {seed: ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())}


def gains_by_seed(first: Sample, second: Sample) -> dict[int, float]:
    """Return by how many percent of ``second`` the first is above it, where that is not 0."""
    base = second.by_seed
    return {
        seed: 100 * gap / base[seed]
        for seed, gap in differences_by_seed(first, second).items()
        if base[seed] > 0
    }


class Samples:
    """All samples of a study under one selection rule, and the statuses of its runs."""

    def __init__(self, table: RunTable, selection: str = "last", lead: str = ""):
        self.selection = selection
        self.statuses: Mapping[Cell, Counter[str]] = table.statuses()
        self.splits: dict[Cell, set[str]] = {}
        versions = table.runs[["run_id", *VERSIONS]]
        scores = table.test_scores(selection, lead=lead).merge(versions, on="run_id")
        samples = samples_of(scores)
        for cell, split, _ in samples:
            self.splits.setdefault(cell, set()).add(split)
        self._samples = with_spreads(samples)
        self.metrics = {metric for _, _, metric in samples}

    def sample(self, cell: Cell, split: str, metric: str) -> Sample:
        """Return the scores of a cell; ``NO_RUNS`` if no finished run has scores."""
        return self._samples.get((cell, split, metric), NO_RUNS)


def samples_of(scores: pd.DataFrame) -> dict[Score, Sample]:
    """Return a sample for each cell, split and metric, without the spreads of sister cells.

    ``scores`` has a row for each run, split and metric: ``CELL_COLUMNS``, split, metric, seed,
    ``VERSIONS``, and the value in [0, 1]. The value of a run without a score is NaN.
    """
    samples = {}
    for key, rows in scores.groupby([*CELL_COLUMNS, "split", "metric"]):
        *columns, split, metric = map(str, key)
        by_seed = {}
        for seed, value in zip(rows["seed"], rows["value"], strict=True):
            if np.isfinite(value):
                by_seed[int(seed)] = 100 * float(value)
        versions = {name: tuple(sorted({*rows[name].astype(str)} - {""})) for name in VERSIONS}
        samples[Cell.of(columns), split, metric] = Sample(by_seed, versions)
    return samples


def with_spreads(samples: Mapping[Score, Sample]) -> dict[Score, Sample]:
    """Return the samples with their spreads, which sister cells share."""
    cells = {key: (sample.sd, sample.n) for key, sample in samples.items()}
    spreads = shared_spreads(cells, family_of)
    return {key: replace(sample, spread=spreads[key]) for key, sample in samples.items()}


def family_of(key: Score) -> tuple[str, str, str, str]:
    """Return what sister cells have in common. They differ in loss and batch size alone."""
    cell, split, metric = key
    return (cell.dataset, cell.setting.label, split, metric)
