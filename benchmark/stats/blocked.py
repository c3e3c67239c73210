"""Losses compared in blocks: all losses of a place together, the seed being the block.

score = loss + seed + residual, an additive two-way analysis of variance (Fisher 1935). What a seed
adds to all losses drops out, and all pairs share one residual variance with (losses - 1) x
(seeds - 1) degrees of freedom. It assumes that all losses are equally noisy, so it is shown beside
the paired test, which does not, and decides nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]


def blocked_p(scores: Floats) -> Floats:
    """Return the two-sided p (L, L) of each pair of losses of ``scores`` (L, S); NaN: no run.

    Only seeds count that all losses with any run share; p is NaN where fewer than two are left.
    """
    p = np.full((len(scores), len(scores)), np.nan)
    run = np.flatnonzero(np.isfinite(scores).any(axis=1))
    shared = scores[np.ix_(run, np.flatnonzero(np.isfinite(scores[run]).all(axis=0)))]
    losses, seeds = shared.shape
    df = (losses - 1) * (seeds - 1)
    if df < 1:
        return p
    means = shared.mean(axis=1)
    residual = shared - means[:, None] - shared.mean(axis=0) + shared.mean()
    se = np.sqrt(2 * (residual**2).sum() / df / seeds)
    if se > 0:
        t = np.abs(np.subtract.outer(means, means)) / se
        p[np.ix_(run, run)] = 2 * stats.t.sf(t, df)
    return p
