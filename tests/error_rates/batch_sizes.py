"""How often the test of two batch sizes is wrong, and what it sees."""

from __future__ import annotations

import numpy as np
import pandas as pd
from error_rates.rule import Rate, share, table_of
from scipy import stats

from benchmark.stats.intervals import holm
from benchmark.stats.reproduction import ALPHA

LOSSES = 8
# Name of a world: the spread at the larger batch size in times the other, and the share of the
# variance that runs of one seed have in common.
WORLDS = {
    "as assumed": (1.0, 0.0),
    "three times the spread at one size": (3.0, 0.0),
    "half the variance shared by seed": (1.0, 0.5),
}


def wrong_and_seen(
    studies: int, seeds: int, ratio: float = 1.0, shared: float = 0.0, effect: float = 3.0
) -> tuple[Rate, Rate]:
    """Return how many studies call a change of some loss though there is none, and of one.

    The second is the rate at which a change of one loss by ``effect`` spreads is called, beside
    ``LOSSES`` - 1 losses that do not change.
    """
    rng = np.random.default_rng(seeds)
    own = np.sqrt(1 - shared)
    of_seed = np.sqrt(shared) * rng.standard_normal((studies, LOSSES, seeds))
    small = of_seed + own * rng.standard_normal(of_seed.shape)
    large = ratio * (of_seed + own * rng.standard_normal(of_seed.shape))

    def called(large: np.ndarray) -> np.ndarray:
        p = stats.ttest_ind(large, small, axis=-1, equal_var=False).pvalue
        return holm(p) <= ALPHA

    moved = large.copy()
    moved[:, -1] += effect
    return share(called(large).any(axis=-1)), share(called(moved)[:, -1])


def batch_size_table(studies: int) -> pd.DataFrame:
    """Return a row per world and number of seeds: rates of any false change, and of power."""

    def rates(world: str, seeds: int) -> dict[str, Rate]:
        ratio, shared = WORLDS[world]
        wrong, seen = wrong_and_seen(studies, seeds, ratio, shared)
        return {"any_false": wrong, "seen": seen}

    return table_of(rates, world=WORLDS, seeds=(3, 5, 10))
