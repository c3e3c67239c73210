"""Adding seeds honestly: a few planned looks, each at a level that pays for the others.

A study that plans looks after 3, 5 and 10 seeds tests at each of them at the same level (Pocock
1977), such that the probability of ever rejecting a true hypothesis on its edge is alpha when all
runs are independent draws. A reference that stays the same at every look makes the looks more
alike, and the true rate smaller. O'Brien and Fleming (1979) spend nearly all of alpha at the last
look, so that the first ones could decide nothing: ``make error-rates`` compares the two.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np
from scipy import optimize, stats

from benchmark.stats.reproduction import ALPHA
from benchmark.study.model import Study

Levels = tuple[float, ...]


def pocock(looks: tuple[int, ...], alpha: float = ALPHA) -> float:
    """Return the one-sided level of the test after each of ``looks``, rising numbers of seeds."""
    return _spent(looks, alpha, np.ones_like)[0]


def obrien_fleming(looks: tuple[int, ...], alpha: float = ALPHA) -> Levels:
    """Return the one-sided levels of O'Brien and Fleming, which rise from look to look."""
    return _spent(looks, alpha, np.sqrt)


def level_of(study: Study, alpha: float = ALPHA) -> float:
    """Return the one-sided level at which a study tests at each of its looks."""
    return pocock(study.looks, alpha) if study.looks else alpha


def at_level(study: Study) -> Study:
    """Return the study with the alpha of its (two-sided) comparisons at the level of a look."""
    alpha = 2 * level_of(study, study.comparison.alpha / 2)
    return replace(study, comparison=replace(study.comparison, alpha=alpha))


Shape = Callable[[np.ndarray], np.ndarray]


@lru_cache(maxsize=256)
def _spent(seeds: tuple[int, ...], alpha: float, shape: Shape) -> Levels:
    """Return one-sided levels, rounded down to 4 digits, whose bounds are c / ``shape`` (t).

    t is the share of the last look's seeds, and c such that alpha is spent over all looks.
    """
    if len(seeds) == 1:
        return (alpha,)
    n = np.array(seeds, float)
    correlation = np.sqrt(np.minimum.outer(n, n) / np.maximum.outer(n, n))
    looks = stats.multivariate_normal(np.zeros(len(n)), correlation)

    def excess(bound: float) -> float:
        bounds = bound / shape(n / n[-1])
        return float(1 - looks.cdf(bounds, rng=np.random.default_rng(0)) - alpha)

    least, most = stats.norm.isf(alpha) * 0.99, stats.norm.isf(alpha / len(seeds)) * 1.01
    bounds = optimize.brentq(excess, least, most, xtol=1e-6) / shape(n / n[-1])
    return tuple(float(np.floor(each * 1e4) / 1e4) for each in stats.norm.sf(bounds))
