"""Mean, standard deviation and Student-t interval of a handful of runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats


@dataclass(frozen=True)
class Summary:
    """Of ``n`` finite values; ``sd`` (n - 1 in the divisor) and the interval are NaN below two values."""

    n: int
    mean: float
    sd: float
    low: float
    high: float


def t_interval(values: ArrayLike, confidence: float = 0.95) -> Summary:
    """Returns mean, sd and two-sided t interval of the finite ``values``; the others are dropped."""
    values = np.asarray(values, dtype=float)
    values = values[np.isfinite(values)]
    n = len(values)
    if n == 0:
        return Summary(0, np.nan, np.nan, np.nan, np.nan)
    mean = float(values.mean())
    if n == 1:
        return Summary(1, mean, np.nan, np.nan, np.nan)
    sd = spread(values)
    half = float(stats.t.ppf(0.5 + confidence / 2, n - 1)) * sd / np.sqrt(n)
    return Summary(n, mean, sd, mean - half, mean + half)


def spread(values: np.ndarray) -> float:
    """Returns the standard deviation; exactly 0 for values that differ by rounding only."""
    level = max(1.0, float(np.abs(values).max()))
    return 0.0 if np.ptp(values) <= 1e-12 * level else float(values.std(ddof=1))
