"""The bootstrap as weights: one set of draws serves all losses, metrics and their differences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


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
