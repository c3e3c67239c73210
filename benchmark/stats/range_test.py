"""Does a mean lie in a range? Two one-sided t-tests on one number per seed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmark.stats.intervals import spread
from benchmark.stats.samples import Spread, shared_spreads


@dataclass(frozen=True)
class RangeTest:
    """Of ``n`` values: mean, interval of confidence 1 - 2 alpha, and both p-values (NaN: no test).

    p          of the hypothesis that the mean lies outside the range; small: it lies inside
    p_against  of the hypothesis that it lies inside
    """

    n: int
    mean: float
    ci_low: float
    ci_high: float
    p: float
    p_against: float


def range_test(
    values: NDArray[np.float64],
    low: float,
    high: float,
    alpha: float,
    shared: Spread | None = None,
) -> RangeTest:
    """Return the test of the mean of ``values`` (n,) against ``low`` to ``high`` (inf: open).

    ``shared`` is the spread of one value, moderated with those of sister comparisons; None: the
    values' own. One value, or values without any spread, give no test, because the error of the
    mean cannot be estimated.
    """
    n = len(values)
    mean = float(values.mean()) if n else np.nan
    each = shared or own_spread(values)
    if n < 2 or not each.df > 0:
        return RangeTest(n, mean, np.nan, np.nan, np.nan, np.nan)
    se, df = each.sd / np.sqrt(n), each.df
    half = se * float(special.stdtrit(df, 1 - alpha))
    ends = np.array([mean - low, high - mean]) / se
    inside, outside = special.stdtr(df, -ends), special.stdtr(df, ends)
    sides = int(np.isfinite(low)) + int(np.isfinite(high))
    against = min(1.0, sides * float(outside.min()))
    return RangeTest(n, mean, mean - half, mean + half, float(inside.max()), against)


def own_spread(values: NDArray[np.float64]) -> Spread:
    """Return the spread of ``values`` alone."""
    sd = spread(values) if len(values) > 1 else np.nan
    return shared_spreads({0: (sd, len(values))}, lambda key: key)[0]
