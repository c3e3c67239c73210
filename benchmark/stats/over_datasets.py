"""Losses compared over datasets: average ranks, Friedman's test, Holm's comparisons, profiles.

Demsar (JMLR 2006) recommends the tests; performance profiles follow Dolan and More (2002) in the
form of Agarwal et al. (NeurIPS 2021): the share of datasets on which a loss reaches a score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from benchmark.stats.families import holm

FEWEST_DATASETS, FEWEST_LOSSES = 3, 3


@dataclass(frozen=True)
class RankComparison:
    """Losses (L) over datasets (N); ranks start at 1 for the best, ties share their mean.

    ranks        average rank by loss, best first
    p_friedman   of equal ranks of all losses; NaN for fewer than three losses or datasets
    p_holm       (L, L) table: two-sided z test of each pair of average ranks, after Holm
    critical     difference of average ranks that Nemenyi's test calls significant
    """

    datasets: int
    ranks: pd.Series
    p_friedman: float
    p_holm: pd.DataFrame
    critical: float


def compare_ranks(scores: pd.DataFrame, alpha: float = 0.05) -> RankComparison:
    """Return the comparison of ``scores``: a row per dataset, a column per loss, mean over seeds.

    Datasets on which some loss has no score are left out: a rank needs all of them.
    """
    scores = scores.dropna()
    datasets, losses = scores.shape
    ranks = scores.rank(axis=1, ascending=False).mean().sort_values(kind="stable")
    step = np.sqrt(losses * (losses + 1) / (6 * max(datasets, 1)))
    enough = datasets >= FEWEST_DATASETS and losses >= FEWEST_LOSSES
    p_friedman = stats.friedmanchisquare(*scores.T.to_numpy()).pvalue if enough else np.nan
    rank = ranks.to_numpy()
    z = np.abs(np.subtract.outer(rank, rank)) / step
    upper = np.triu_indices(losses, 1)
    adjusted = np.ones((losses, losses))
    adjusted[upper] = holm(2 * stats.norm.sf(z[upper]))
    adjusted = np.minimum(adjusted, adjusted.T)
    p_holm = pd.DataFrame(adjusted, index=ranks.index, columns=ranks.index)
    critical = stats.studentized_range.ppf(1 - alpha, losses, np.inf) / np.sqrt(2) * step
    return RankComparison(datasets, ranks, float(p_friedman), p_holm, float(critical))


def performance_profiles(scores: pd.DataFrame) -> pd.DataFrame:
    """Return, by loss, the share of (dataset, seed) rows with a score of at least ``score``.

    ``scores`` has a column per loss; rows may be datasets, or datasets and seeds. Scores are
    relative to the best mean of their dataset where the rows' first level is the dataset, so that
    easy and hard datasets count alike.
    """
    dataset = scores.index.get_level_values(0)
    best = scores.groupby(dataset).mean().max(axis=1)
    relative = scores.div(best.reindex(dataset).to_numpy(), axis=0)
    grid = np.unique(relative.to_numpy()[np.isfinite(relative.to_numpy())])
    reached = {loss: (relative[loss].to_numpy()[:, None] >= grid).mean(axis=0) for loss in scores}
    return pd.DataFrame({"score": grid, **reached})
