"""Mean, standard deviation and Student-t interval of a handful of runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

NO_SPREAD = 1e-12  # relative: values closer than this differ by rounding only


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


def mean_sd(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns mean and ``spread`` (T,) of each row's finite values in (T, S); NaN below one and two values."""
    finite = np.isfinite(values)
    n = finite.sum(axis=1)
    filled = np.where(finite, values, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = filled.sum(axis=1) / n
        deviations = np.where(finite, values - mean[:, None], 0.0)
        sd = np.sqrt((deviations**2).sum(axis=1) / (n - 1))
    extent = np.where(finite, values, -np.inf).max(axis=1, initial=-np.inf) - np.where(
        finite, values, np.inf
    ).min(axis=1, initial=np.inf)
    level = np.maximum(1.0, np.abs(filled).max(axis=1, initial=0.0))
    sd = np.where(extent <= NO_SPREAD * level, 0.0, sd)
    return mean, np.where(n > 1, sd, np.nan)


def t_half_widths(sd: np.ndarray, n: np.ndarray, confidence: float = 0.95) -> np.ndarray:
    """Returns half the width of the two-sided t interval of each mean of ``n`` values; NaN below two."""
    quantile = stats.t.ppf(0.5 + confidence / 2, np.maximum(n - 1, 1))
    return np.where(n > 1, quantile * sd / np.sqrt(np.maximum(n, 1)), np.nan)


def spread(values: np.ndarray) -> float:
    """Returns the standard deviation; exactly 0 for values that differ by rounding only."""
    level = max(1.0, float(np.abs(values).max()))
    return 0.0 if np.ptp(values) <= NO_SPREAD * level else float(values.std(ddof=1))
