"""Student's t intervals of a handful of runs; the bootstrap, whose draws serve all losses."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

NO_SPREAD = 1e-12  # relative: values closer than this differ by rounding only
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MeanInterval:
    """Of ``n`` finite values; ``sd`` (n - 1 in the divisor) and the interval are NaN below two."""

    n: int
    mean: float
    sd: float
    low: float
    high: float


def t_interval(values: Iterable[float], confidence: float = 0.95) -> MeanInterval:
    """Return mean, sd and two-sided t interval of the finite ``values``; the others are dropped."""
    row = np.array(list(values), dtype=float)
    n = int(np.isfinite(row).sum())
    mean, sd = (float(each[0]) for each in mean_sd(row[None]))
    half = float(t_half_widths(np.array(sd), np.array(n), confidence))
    return MeanInterval(n, mean, sd, mean - half, mean + half)


def mean_sd(values: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation (T,) of the finite values of each row of (T, S).

    They are NaN below one and two values; the deviation of values that differ by rounding only is
    0.
    """
    finite = np.isfinite(values)
    n = finite.sum(axis=1)
    filled = np.where(finite, values, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = filled.sum(axis=1) / n
        deviations = np.where(finite, values - mean[:, None], 0.0)
        sd = np.sqrt((deviations**2).sum(axis=1) / (n - 1))
    highest = np.where(finite, values, -np.inf).max(axis=1, initial=-np.inf)
    lowest = np.where(finite, values, np.inf).min(axis=1, initial=np.inf)
    level = np.maximum(1.0, np.abs(filled).max(axis=1, initial=0.0))
    sd = np.where(highest - lowest <= NO_SPREAD * level, 0.0, sd)
    return mean, np.where(n > 1, sd, np.nan)


def t_half_widths(sd: Floats, n: NDArray[np.int64], confidence: float = 0.95) -> Floats:
    """Return half the width of the t interval of each mean of ``n`` values; NaN below two."""
    quantile = stats.t.ppf(0.5 + confidence / 2, np.maximum(n - 1, 1))
    return np.where(n > 1, quantile * sd / np.sqrt(np.maximum(n, 1)), np.nan)


def spread(values: Iterable[float]) -> float:
    """Return the standard deviation of two values or more."""
    return float(mean_sd(np.array(list(values), dtype=float)[None])[1][0])


def drawn_weights(strata: NDArray[Any], draws: int, seed: int = 0) -> Floats:
    """Return how often each unit (U,) is drawn: (draws, U), units of a stratum for each other.

    ``weights @ values`` are then the sums over the units that were drawn.
    """
    rng = np.random.default_rng(seed)
    weights = np.zeros((draws, len(strata)))
    for stratum in np.unique(strata):
        units = np.flatnonzero(strata == stratum)
        weights[:, units] = rng.multinomial(len(units), np.full(len(units), 1 / len(units)), draws)
    return weights


def percentile_interval(drawn: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return the ends of the percentile interval of ``drawn`` (draws, ...)."""
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return low, high
