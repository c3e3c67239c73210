"""What a paired t-test of n runs could have seen: the smallest detectable difference."""

from __future__ import annotations

import functools

import numpy as np
from scipy import optimize, stats


def power(effect: float, n: int, alpha: float = 0.05) -> float:
    """Return the probability that a two-sided t-test of ``n`` pairs rejects at d_z = ``effect``."""
    df = n - 1
    critical = stats.t.ppf(1 - alpha / 2, df)
    shift = effect * np.sqrt(n)
    lower = stats.nct.cdf(-critical, df, shift)
    # SciPy returns NaN where this tail is too small for its series: it is then 0.
    return float(stats.nct.sf(critical, df, shift) + np.nan_to_num(lower))


@functools.lru_cache(maxsize=1024)
def detectable_effect(n: int, alpha: float = 0.05, target: float = 0.8) -> float:
    """Return the least d_z that ``n`` pairs detect with probability ``target``; NaN below two."""
    if n < 2:
        return float("nan")
    high = 1.0
    while power(high, n, alpha) < target:
        high *= 2
    return float(
        optimize.brentq(lambda effect: power(effect, n, alpha) - target, 0.0, high, xtol=1e-9)
    )
