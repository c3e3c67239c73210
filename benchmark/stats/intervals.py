"""Small samples: t intervals, corrections for many tests, rates of divergence, the bootstrap."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy  # loads scipy.stats, which takes half a second, at its first use
from numpy.typing import ArrayLike, NDArray
from scipy import special

NO_SPREAD = 1e-12  # relative: values closer than this differ by rounding only
TOLERATED = 0.1  # share of diverging runs that a usable loss may have
Floats = NDArray[np.float64]


class MeanInterval(NamedTuple):
    """Mean, sd and interval of ``n`` finite values.

    ``sd`` has n - 1 in the divisor. Below two values sd and interval are NaN.
    """

    n: int
    mean: float
    sd: float
    low: float
    high: float


def t_interval(values: Iterable[float], confidence: float = 0.95) -> MeanInterval:
    """Return mean, sd and two-sided t interval of the finite ``values``."""
    row = np.array([[*values]], dtype=float)
    n, *numbers = t_intervals(row, confidence)
    return MeanInterval(int(n[0]), *(float(number[0]) for number in numbers))


def t_intervals(
    values: Floats, confidence: float
) -> tuple[NDArray[np.int64], Floats, Floats, Floats, Floats]:
    """Return n, mean, sd, low and high (T,) as in ``MeanInterval``, for each row of (T, S)."""
    n = np.isfinite(values).sum(axis=1)
    mean, sd = mean_sd(values)
    df = np.maximum(n - 1, 1)
    quantile = special.stdtrit(df, 0.5 + confidence / 2)
    half = quantile * sd / np.sqrt(np.maximum(n, 1))
    return n, mean, sd, mean - half, mean + half


def mean_sd(values: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation (T,) of the finite values of each row of (T, S).

    The mean is NaN without a value, the deviation below two values. Values that differ by rounding
    only have deviation 0.
    """
    finite = np.isfinite(values)
    n = finite.sum(axis=1)
    filled = np.where(finite, values, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = filled.sum(axis=1) / n
        deviations = np.where(finite, values - mean[:, None], 0.0)
        squares = (deviations**2).sum(axis=1)
        sd = np.sqrt(squares / (n - 1))
    highest = values.max(axis=1, initial=-np.inf, where=finite)
    lowest = values.min(axis=1, initial=np.inf, where=finite)
    largest = np.abs(filled).max(axis=1, initial=0.0)
    level = np.maximum(1.0, largest)
    equal = highest - lowest <= NO_SPREAD * level
    sd = np.where(equal, 0.0, sd)
    return mean, np.where(n > 1, sd, np.nan)


def spread(values: Iterable[float]) -> float:
    """Return the standard deviation of two values or more."""
    row = np.array(list(values), dtype=float)[None]
    _, sd = mean_sd(row)
    return float(sd[0])


def holm(p_values: ArrayLike, planned: int = 0) -> Floats:
    """Return Holm-adjusted p-values in the given order; each row of the last axis is a family.

    NaN stands for a comparison that could not be tested, and stays NaN. ``planned`` is the number
    of tests in the plan. Tests that are still missing count as well, so that a result stays when
    the others come in. statsmodels' version takes one family at a time; this one takes many.
    """
    p_values = np.asarray(p_values, dtype=float)
    order = np.argsort(p_values, axis=-1, kind="stable")  # NaN last
    rising = np.take_along_axis(p_values, order, axis=-1)
    tested = np.isfinite(p_values).sum(axis=-1, keepdims=True)
    count = np.maximum(tested, planned)
    left = count - np.arange(p_values.shape[-1])
    stepped = np.minimum(np.maximum.accumulate(rising * left, axis=-1), 1.0)
    adjusted = np.empty_like(p_values)
    np.put_along_axis(adjusted, order, stepped, axis=-1)
    return adjusted


def discoveries(p_values: ArrayLike) -> Floats:
    """Return p-values adjusted for the false discovery rate (Benjamini and Hochberg 1995).

    Results at or below q hold at a false discovery rate of q. NaN stays NaN and does not count.
    """
    p_values = np.asarray(p_values, dtype=float)
    tested = np.isfinite(p_values)
    adjusted = np.full(p_values.shape, np.nan)
    if tested.any():
        adjusted[tested] = scipy.stats.false_discovery_control(p_values[tested])
    return adjusted


def diverges(diverged: int, runs: int, alpha: float = 0.05) -> bool:
    """Return whether more than the ``TOLERATED`` share of runs diverges, by the exact test.

    2 of 2, 2 of 3 and 3 of 5 runs show it; a single run, 1 of 3 and 2 of 5 do not.
    """
    if not runs:
        return False
    test = scipy.stats.binomtest(diverged, runs, TOLERATED, alternative="greater")
    return bool(test.pvalue <= alpha)


def p_more_divergence(first: tuple[int, int], second: tuple[int, int]) -> float:
    """Return p of Fisher's exact test: the first (diverged, runs) diverges more than the second."""
    table = [[diverged, runs - diverged] for diverged, runs in (first, second)]
    test = scipy.stats.fisher_exact(np.array(table), alternative="greater")
    return float(test.pvalue)


def drawn_weights(strata: NDArray[Any], draws: int, seed: int = 0) -> Floats:
    """Return how often each unit (U,) is drawn: (draws, U). Units are drawn within their stratum.

    ``weights @ values`` are then the sums over the units that were drawn.
    """
    rng = np.random.default_rng(seed)
    weights = np.zeros((draws, len(strata)))
    for stratum in np.unique(strata):
        units = np.flatnonzero(strata == stratum)
        equal = np.full(len(units), 1 / len(units))
        weights[:, units] = rng.multinomial(len(units), equal, draws)
    return weights


def percentile_interval(drawn: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return the ends of the percentile interval of ``drawn`` (draws, ...)."""
    levels = [(1 - confidence) / 2, (1 + confidence) / 2]
    low, high = np.quantile(drawn, levels, axis=0)
    return low, high
