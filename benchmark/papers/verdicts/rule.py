"""The rule behind every verdict, on arrays: the same code judges one cell, a table, or a million simulated ones.

D = ours - reference is normal with mean delta. Its standard error counts both sides:

| what is known | squared standard error | degrees of freedom |
|---|---|---|
| both sides under the same k seeds (frozen runs) | d^2/k | k - 1 |
| spread of both sides | s^2/n + r^2/m | min(n, m) - 1 |
| ours only (reference: m draws, m = 1 unless stated) | s^2 (1/n + 1/m) | n - 1 |
| reference's, and a pooled spread of our sister cells | q^2/n + r^2/m | min(that of q, m - 1) |
| reference's only (one run of ours) | r^2 (1/n + 1/m) | m - 1 |
| pooled only | q^2 (1/n + 1/m) | that of q |

With s, n ours, r, m the reference's and d the spread of the differences by seed. Where one spread stands for both
sides the row is an exact t if the two are equal, and an assumption otherwise. For two spreads Welch's degrees of
freedom are too many for two to five runs (at the levels that Holm needs, true rates come out up to ten times the
nominal ones); min(n, m) - 1 bounds the error for every ratio of the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

ALPHA = 0.05


@dataclass(frozen=True)
class Evidence:
    """Arrays of one shape (or scalars), in percentage points; NaN for a spread or number that is not known.

    A reference without a stated number of runs is one draw. ``slack`` is half a unit of the last printed digit:
    the printed value may be off by that much either way, and the rule grants it to both hypotheses.
    """

    ours: ArrayLike
    ours_sd: ArrayLike
    ours_n: ArrayLike
    reference: ArrayLike
    reference_sd: ArrayLike = np.nan
    reference_n: ArrayLike = np.nan
    pooled_sd: ArrayLike = np.nan
    pooled_df: ArrayLike = np.nan
    paired_sd: ArrayLike = np.nan
    paired_n: ArrayLike = np.nan
    margin: ArrayLike = 1.0
    slack: ArrayLike = 0.0


@dataclass(frozen=True)
class Judged:
    """Arrays: the difference, its standard error and degrees of freedom, 90% interval and the two p-values."""

    difference: np.ndarray
    se: np.ndarray
    df: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p_equivalence: np.ndarray
    p_drift: np.ndarray


def standard_error(evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
    """Returns (standard error, degrees of freedom) of the difference by the table above; NaN where neither is known."""
    n, s = np.asarray(evidence.ours_n, float), np.asarray(evidence.ours_sd, float)
    m, r = np.asarray(evidence.reference_n, float), np.asarray(evidence.reference_sd, float)
    q, q_df = np.asarray(evidence.pooled_sd, float), np.asarray(evidence.pooled_df, float)
    d, k = np.asarray(evidence.paired_sd, float), np.asarray(evidence.paired_n, float)
    paired = (k >= 2) & np.isfinite(d)
    stated = (m >= 2) & np.isfinite(r)
    m = np.where(np.isfinite(m) & (m >= 1), m, 1.0)
    pooled = (q > 0) & (q_df >= 1)
    # Equal values in every run say little about spread: sister cells say more, where there are any.
    known = (n >= 2) & np.isfinite(s) & ~((s == 0) & ~stated & pooled)
    conditions = [paired, known & stated, known, stated & pooled, stated, pooled]
    both = 1 / n + 1 / m
    variance = np.select(
        conditions,
        [d**2 / k, s**2 / n + r**2 / m, s**2 * both, q**2 / n + r**2 / m, r**2 * both, q**2 * both],
        np.nan,
    )
    df = np.select(
        conditions,
        [k - 1, np.minimum(n, m) - 1, n - 1, np.minimum(q_df, m - 1), m - 1, q_df],
        np.nan,
    )
    return np.sqrt(variance), df


def judge_arrays(evidence: Evidence, alpha: float = ALPHA) -> Judged:
    """Returns the test results of each element.

    ``p_equivalence`` is the larger of two one-sided tests of |delta| >= margin; it is at most ``alpha`` when the
    interval of confidence 1 - 2 alpha lies inside the margin. ``p_drift`` tests |delta| <= margin: the tail beyond the
    observed |D| at the nearer edge of the margin plus that at the farther one, which makes it the plain one-sided test
    for a wide margin and the two-sided test for a margin of zero. A standard error of zero gives 0 or 1.
    """
    difference = np.asarray(evidence.ours, float) - np.asarray(evidence.reference, float)
    se, df = standard_error(evidence)
    difference, se, df = np.broadcast_arrays(difference, se, df)
    reach = np.asarray(evidence.margin, float) + np.asarray(evidence.slack, float)
    room = np.asarray(evidence.margin, float) - np.asarray(evidence.slack, float)
    half = np.where(se == 0, 0.0, _quantile(1 - alpha, df) * se) + evidence.slack
    size = np.abs(difference)
    p_drift = np.minimum(_tail(size - reach, se, df) + _tail(size + reach, se, df), 1.0)
    return Judged(
        difference, se, df, difference - half, difference + half, _tail(room - size, se, df), p_drift
    )  # fmt: skip


def _tail(distance: np.ndarray, se: np.ndarray, df: np.ndarray) -> np.ndarray:
    """Returns P(T * se >= distance); without spread it is 0 for a positive distance and 1 otherwise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = special.stdtr(df, -distance / se)
    return np.where(se == 0, np.where(distance > 0, 0.0, 1.0), tail)


def _quantile(probability: float, df: np.ndarray) -> np.ndarray:
    """Returns Student's t quantile for each element; few distinct ``df`` occur, and each is inverted once."""
    values, index = np.unique(df, return_inverse=True)
    return special.stdtrit(values, probability)[index].reshape(df.shape)


def seeds_to_decide(
    difference: float,
    spread: float,
    reference_sd: float,
    reference_n: float,
    *,
    now: int,
    margin: float,
    slack: float = 0.0,
    family: int = 1,
    paired: bool = False,
    alpha: float = ALPHA,
    most: int = 1000,
) -> float:
    """Returns the smallest number of our runs, above ``now``, that decides if difference and spread stay.

    ``paired``: ``spread`` is that of differences by seed, and the reference gets as many runs.
    A drift is counted only at the strictest level of Holm, alpha / family. NaN when even ``most`` runs would not do:
    then the reference side alone, often a single run, is too uncertain.
    """
    n = np.arange(max(now + 1, 2), most + 1)
    if not np.isfinite(spread) or not len(n):
        return float("nan")
    full = np.full(len(n), 1.0)
    sides = {"reference_sd": reference_sd, "reference_n": reference_n}
    known = {"paired_sd": spread, "paired_n": n} if paired else sides
    judged = judge_arrays(
        Evidence(difference * full, spread * full, n, 0 * full, margin=margin, slack=slack, **known)
    )
    decided = (judged.p_equivalence <= alpha) | (judged.p_drift <= alpha / max(family, 1))
    return float(n[decided.argmax()]) if decided.any() else float("nan")
