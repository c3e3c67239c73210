"""Rules that could have been chosen: ways to moderate variances, between two extremes.

The extremes are the plain t test, which borrows nothing, and one pooled spread for all sister
cells, which is also the blocked analysis of variance when the cells are pairs of losses. Smyth's
estimate (limma's ``fitFDist``) is the textbook way between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from benchmark.stats.moderation import Moderated, moderate
from benchmark.stats.simulations.rates import Moderation

Floats = NDArray[np.float64]
CHOSEN = "chosen"
PLAIN = "plain"


def plain(variance: ArrayLike, df: ArrayLike) -> Moderated:
    """Return each cell's own variance, zero taken as exact: the rule before spreads were shared."""
    own = moderate(variance, df, limit=0.0)
    return Moderated(np.maximum(own.variance, 1e-18), own.df, own.prior_variance, own.prior_df)


def pooled(variance: ArrayLike, df: ArrayLike) -> Moderated:
    """Return one variance for all sister cells."""
    variance, df = np.broadcast_arrays(np.asarray(variance, float), np.asarray(df, float))
    total = df.sum(axis=-1, keepdims=True)
    mean = (df * variance).sum(axis=-1, keepdims=True) / total
    mean, total = np.broadcast_to(mean, df.shape), np.broadcast_to(total, df.shape)
    return Moderated(mean, total, mean, total - df)


def smyth(variance: ArrayLike, df: ArrayLike, limit: float = np.inf) -> Moderated:
    """Return variances moderated as by Smyth (2004, section 6.2): the prior from log variances.

    For equal degrees of freedom. Variances of zero are raised as limma raises them.
    """
    variance, df = np.broadcast_arrays(np.asarray(variance, float), np.asarray(df, float))
    half = df / 2
    raised = np.maximum(variance, 1e-5 * np.median(variance, axis=-1, keepdims=True))
    e = np.log(raised) - special.digamma(half) + np.log(half)
    centre = e.mean(axis=-1, keepdims=True)
    extra = e.var(axis=-1, ddof=1, keepdims=True) - special.polygamma(1, half[..., :1])
    prior_half = _inverse_trigamma(np.maximum(extra, 1e-6))
    prior_variance = np.exp(centre + special.digamma(prior_half) - np.log(prior_half))
    prior_df = np.minimum(2 * prior_half, limit) * np.ones_like(df)
    moderated = (prior_df * prior_variance + df * variance) / (prior_df + df)
    total = np.minimum(prior_df + df, df.sum(axis=-1, keepdims=True))
    return Moderated(moderated, total, prior_variance * np.ones_like(df), prior_df)


def always(variance: ArrayLike, df: ArrayLike, prior_df: float = 5.0) -> Moderated:
    """Return variances with ``prior_df`` borrowed, however few or different the sisters are."""
    variance, df = np.broadcast_arrays(np.asarray(variance, float), np.asarray(df, float))
    squares = df * variance
    others = df.sum(axis=-1, keepdims=True) - df
    prior = (squares.sum(axis=-1, keepdims=True) - squares) / others
    moderated = (prior_df * prior + squares) / (prior_df + df)
    return Moderated(moderated, prior_df + df, prior, np.full(df.shape, prior_df))


def _inverse_trigamma(value: Floats) -> Floats:
    """Return x with trigamma(x) = ``value``, by Newton's method on 1 / trigamma."""
    x = 0.5 + 1 / value
    for _ in range(20):
        trigamma = special.polygamma(1, x)
        x = x + trigamma * (1 - trigamma / value) / special.polygamma(2, x)
    return np.asarray(x, float)


CANDIDATES: Mapping[str, Moderation] = {
    PLAIN: plain,
    "pooled": pooled,
    "Smyth": smyth,
    "Smyth, at most 5": partial(smyth, limit=5.0),
    "always 5": always,
    "at most 5": partial(moderate, times=np.inf),
    "once its own": partial(moderate, times=1.0),
    CHOSEN: moderate,
    "three times its own": partial(moderate, times=3.0),
    "no cell set aside": partial(moderate, outlier=0.0),
}
