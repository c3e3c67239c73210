"""Adding seeds honestly: a few planned looks, each at a level that pays for the others.

A study that plans looks after 3, 5 and 10 seeds tests at each of them at the same level (Pocock
1977). The level is such that the probability of ever rejecting a true hypothesis on its edge is
alpha when all runs are independent draws; a reference that stays the same at every look makes the
looks more alike, and the true rate smaller. A verdict reached at a look is final. Between looks
nothing is decided: what the runs say is interim.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import optimize, stats

from benchmark.stats.reproduction import ALPHA


@dataclass(frozen=True)
class Looks:
    """The planned numbers of seeds, rising; one number is a plain test without any look before."""

    seeds: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.seeds or min(self.seeds) < 1 or list(self.seeds) != sorted(set(self.seeds)):
            raise ValueError(f"looks must be rising numbers of seeds, not {self.seeds}")

    def level(self, alpha: float = ALPHA) -> float:
        """Return the level of the test at each look."""
        return _pocock(self.seeds, alpha)

    def reached(self, seeds: int) -> tuple[int, ...]:
        """Return the looks that ``seeds`` finished seeds allow."""
        return tuple(look for look in self.seeds if look <= seeds)

    def after(self, seeds: int) -> int | None:
        """Return the next look, or None after the last."""
        return next((look for look in self.seeds if look > seeds), None)

    def interim(self, seeds: int) -> bool:
        """Return whether ``seeds`` finished seeds lie between two looks or before the first."""
        return seeds not in self.seeds and seeds < self.seeds[-1]


@lru_cache(maxsize=256)
def _pocock(seeds: tuple[int, ...], alpha: float) -> float:
    """Return the one-sided level at which every look tests, rounded down to 4 digits."""
    if len(seeds) == 1:
        return alpha
    n = np.array(seeds, float)
    correlation = np.sqrt(np.minimum.outer(n, n) / np.maximum.outer(n, n))
    looks = stats.multivariate_normal(np.zeros(len(n)), correlation)

    def excess(level: float) -> float:
        bound = np.full(len(n), stats.norm.isf(level))
        return float(1 - looks.cdf(bound, rng=np.random.default_rng(0)) - alpha)

    level = optimize.brentq(excess, alpha / len(seeds) * 0.99, alpha, xtol=1e-6)
    return float(np.floor(level * 1e4) / 1e4)
