"""The expected best score of a number of trials, and the share of it that each option explains."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special, stats

Floats = NDArray[np.float64]


def best_weights(trials: int) -> Floats:
    """Return (T, T): row n - 1 weights sorted scores so that their sum is the expected best of n.

    ``n`` of the ``trials`` are drawn without replacement: C(i - 1, n - 1) / C(T, n) for the score
    of rank i, the lowest being 1. This is the unbiased form of Dodge et al. (EMNLP 2019), whose
    own draws with replacement are biased (Tang et al., ACL 2020).
    """
    rank, drawn = np.arange(trials), np.arange(1, trials + 1)[:, None]
    return np.asarray(special.comb(rank, drawn - 1) / special.comb(trials, drawn), dtype=float)


def expected_best(scores: Floats) -> Floats:
    """Return (..., T): the expected best of 1, 2, ... of the scores (..., T) of trials."""
    best: Floats = np.sort(scores, axis=-1) @ best_weights(scores.shape[-1]).T
    return best


def resampled(folds: Floats, draws: int, generator: np.random.Generator) -> Floats:
    """Return (draws, T) scores of trials drawn again, with the folds drawn again as well.

    ``folds`` (T, F) are the scores of one loss. Both are drawn with replacement.
    """
    trials, parts = folds.shape
    drawn = generator.integers(trials, size=(draws, trials))
    chosen = generator.integers(parts, size=(draws, parts))
    means: Floats = folds[drawn[:, :, None], chosen[:, None, :]].mean(axis=2)
    return means


def explained_share(values: pd.Series, scores: Floats, bins: int = 3) -> dict[str, float]:
    """Return what one option explains of the scores (T,) of trials: share, p and rho.

    A simpler stand-in for functional ANOVA, which 16 trials cannot carry. ``share`` is the part of
    the variance of the ranks that lies between ``bins`` equally full bins of the option's values,
    less what chance alone would put there (epsilon squared, at least 0); ``p`` is that of Kruskal
    and Wallis, ``rho`` Spearman's correlation. Interactions are not seen.
    """
    distinct = values.nunique()
    if distinct < 2 or len(np.unique(scores)) < 2:
        return {"share": 0.0, "p": 1.0, "rho": 0.0}
    groups = (
        values if distinct <= bins else pd.qcut(values.rank(method="first"), bins, labels=False)
    )
    parts = [scores[groups.to_numpy() == group] for group in groups.unique()]
    n, k = len(scores), len(parts)
    h = float(stats.kruskal(*parts).statistic)
    share = max(0.0, (h - k + 1) / (n - k)) if n > k else 0.0
    rho = float(stats.spearmanr(values, scores).statistic)
    return {"share": share, "p": float(stats.chi2.sf(h, k - 1)), "rho": rho}
