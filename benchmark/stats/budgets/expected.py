"""What trials tell: the expected best, what each option explains, how sure the order is."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special, stats

from benchmark.stats.intervals import Floats, mean_sd


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


@dataclass(frozen=True)
class Order:
    """The order of L losses under draws; rank 1 is the best.

    low, high   (L,): bounds of the middle share of ranks
    kendall     mean Kendall tau between the order of a draw and that of the scores
    flipped     mean share of pairs of losses whose order is another one
    best_kept   share of draws with the same best loss
    """

    low: Floats
    high: Floats
    kendall: float
    flipped: float
    best_kept: float


def order_under(scores: Floats, draws: Floats, alpha: float = 0.05) -> Order:
    """Return how the order of ``scores`` (L,) holds in ``draws`` (L, B)."""
    ranks = stats.rankdata(-draws, axis=0)
    low, high = np.quantile(ranks, [alpha / 2, 1 - alpha / 2], axis=1)
    first, second = np.triu_indices(len(scores), 1)
    as_scored = np.sign(scores[first] - scores[second])[:, None]
    agreement = np.sign(draws[first] - draws[second]) * as_scored
    best_kept = float((draws.argmax(axis=0) == scores.argmax()).mean())
    return Order(low, high, float(agreement.mean()), float((agreement < 0).mean()), best_kept)


def seeds_drawn(finals: Floats, draws: int, generator: np.random.Generator) -> Floats:
    """Return (L, draws) means of final scores (L, S), with the seeds drawn again for all alike."""
    seeds = generator.integers(finals.shape[1], size=(draws, finals.shape[1]))
    losses, count = finals.shape
    return mean_sd(finals[:, seeds].reshape(-1, count))[0].reshape(losses, draws)
