"""Where the spread between runs comes from: initial weights, batch order, augmentation.

Each source has its own seed with k values, and the k^2 runs form a Latin square: run (i, j) has
initial weights i, batch order j and augmentation (i + j) mod k (``study.model.square_seeds``).
Every value of a source meets every value of each other source once, so that all three variances are
estimated from the same runs with k - 1 degrees of freedom each. What is left is the sources'
interaction: how much the effect of one seed depends on the others.

    E(mean square of a source) = interaction + k * variance of the source
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmark.runs.table import RunTable
from benchmark.stats.intervals import Floats

SOURCES = ("initial weights", "batch order", "augmentation")
INTERACTION = "interaction"
REPETITIONS = 2000
SMALLEST = 3
SEEDS = ("recipe.seeds.weights", "recipe.seeds.order", "recipe.seeds.augmentation")
CELL = ["dataset", "setting", "batch_size", "split", "metric", "loss"]
NOISE_COLUMNS = [*CELL, "source", "sd", "share", "low", "high", "runs", "mean"]


@dataclass(frozen=True)
class Share:
    """The variance of one source, its share of the total, and the interval of the share."""

    source: str
    variance: float
    share: float
    low: float
    high: float


def square_runs(table: RunTable) -> dict[str, tuple[int, int]]:
    """Return the runs that have a seed for each source: {run_id: (initial weights, order)}."""
    if not set(SEEDS) <= set(table.runs.columns):
        return {}
    runs = table.runs[["run_id", *SEEDS]].dropna()
    return {run: (int(one), int(two)) for run, one, two in runs.iloc[:, :3].itertuples(index=False)}


def noise_shares(table: RunTable, metrics: Sequence[str], alpha: float = 0.05) -> pd.DataFrame:
    """Return the shares of the sources for each whole square of a study (``NOISE_COLUMNS``)."""
    placed = square_runs(table)
    scores = table.test_scores("last", metrics)
    scores = scores[scores["run_id"].isin(placed)]
    rows = []
    for cell, part in scores.groupby(CELL):
        size = round(len(part) ** 0.5)
        square = np.full((size, size), np.nan)
        for run, value in part[["run_id", "value"]].itertuples(index=False):
            at = placed[run]
            if max(at) < size:
                square[at] = value
        if size < SMALLEST or not np.isfinite(square).all() or len(part) != size**2:
            continue
        for found in shares(square, 1 - alpha):
            numbers = (found.variance**0.5, found.share, found.low, found.high)
            rows.append((*cell, found.source, *numbers, len(part), float(square.mean())))
    return pd.DataFrame(rows, columns=NOISE_COLUMNS)


def shares(scores: Floats, confidence: float = 0.95, seed: int = 0) -> list[Share]:
    """Return the share of each of ``SOURCES`` and of ``INTERACTION`` in the variance of a run.

    ``scores`` (k, k) are those of the square, k at least 3. A variance that comes out negative is
    zero. The interval is the generalised one of Weerahandi (1993): each sum of squares over a draw
    of its chi-square distribution.
    """
    size = len(scores)
    squares, df = _sums_of_squares(scores), np.array([size - 1] * 3 + [(size - 1) * (size - 2)])
    variances = _variances(squares / df, size)
    drawn = np.random.default_rng(seed).chisquare(df, (REPETITIONS, len(df)))
    pivots = _shares(_variances(squares / drawn, size))
    low, high = np.quantile(pivots, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    columns = zip((*SOURCES, INTERACTION), variances, _shares(variances), low, high, strict=True)
    return [Share(name, *map(float, numbers)) for name, *numbers in columns]


def _sums_of_squares(scores: Floats) -> Floats:
    """Return the sums of squares (4,) of a square (k, k)."""
    size = len(scores)
    centred = scores - scores.mean()
    index = np.add.outer(np.arange(size), np.arange(size)) % size
    diagonals = np.bincount(index.ravel(), weights=centred.ravel()) / size
    means = (centred.mean(axis=1), centred.mean(axis=0), diagonals)
    squares = [size * float((mean**2).sum()) for mean in means]
    return np.array([*squares, max(float((centred**2).sum()) - sum(squares), 0.0)])


def _variances(mean_squares: Floats, size: int) -> Floats:
    """Return the variances of the sources and of what is left from mean squares (..., 4)."""
    left = mean_squares[..., 3:]
    sources = np.maximum((mean_squares[..., :3] - left) / size, 0.0)
    return np.concatenate([sources, left], axis=-1)


def _shares(variances: Floats) -> Floats:
    total = variances.sum(axis=-1, keepdims=True)
    return variances / np.where(total > 0, total, 1.0)
