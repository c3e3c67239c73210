"""Rules that could have been chosen, and the frontier: what each gets wrong against what it sees.

A rule is a way to moderate variances, between two extremes: the plain t test, which borrows
nothing, and one pooled spread for all sister cells, which is also the blocked analysis of variance
when the cells are pairs of losses. Smyth's estimate (limma's ``fitFDist``) is the textbook way
between them.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import special

from benchmark.stats.intervals import Floats
from benchmark.stats.moderation import Moderated, moderate
from benchmark.stats.simulations.rates import (
    Moderation,
    Rate,
    any_drifted,
    columns,
    drift_seen,
    reproduced,
)
from benchmark.stats.simulations.world import PAIRED, SINGLE, World

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


SEEDS = (2, 3, 5)
# How the true spreads of sister cells may differ.
SPREADS: Mapping[str, World] = {
    "equal": World(),
    "log sd 0.4": World(log_sd=0.4),
    "log sd 0.8": World(log_sd=0.8),
    "one of 10 times": World(outliers=1, factor=10.0),
    "places of 6, log sd 0.4": World(sisters=6, log_sd=0.4),
}


def frontier_table(tables: int, seed: int = 0) -> pd.DataFrame:
    """Return a row per candidate, reference, number of seeds and world of spreads: its rates.

    any_drifted   tables with a false drift, the worse of: no difference and a spread of 3 margins;
                  every difference on the edge of the margin and a spread of one margin
    reproduced    numbers called reproduced that differ by the margin, at spread 0.3
    drift_seen    3 points called drifted, at spread 0.3

    Each rate is of ``tables`` simulated tables, with its Monte Carlo limits.
    """
    records = []
    for reference, seeds, (spreads, world) in product((SINGLE, PAIRED), SEEDS, SPREADS.items()):
        here = replace(world, reference=reference, seeds=seeds)
        for name, moderation in CANDIDATES.items():
            rates = {
                "any_drifted": worst_any_drifted(here, tables, seed, moderation),
                "reproduced": reproduced(here, tables, 1.0, seed, moderation),
                "drift_seen": drift_seen(here, tables, seed=seed, moderation=moderation),
            }
            row = {"candidate": name, "reference": reference, "seeds": seeds, "spreads": spreads}
            records.append({**row, **columns(rates)})
    return pd.DataFrame(records)


def worst_any_drifted(world: World, tables: int, seed: int, moderation: Moderation) -> Rate:
    """Return the higher rate of tables with a false drift, far from the margin and at its edge."""
    far = any_drifted(replace(world, sigma=3.0), tables, 0.0, seed, moderation)
    edge = any_drifted(replace(world, sigma=1.0), tables, 1.0, seed, moderation)
    return max(far, edge, key=lambda rate: rate.value)
