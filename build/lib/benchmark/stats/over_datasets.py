"""Losses compared over datasets: average ranks, Friedman's test, Holm's comparisons, profiles.

Demsar (JMLR 2006) recommends the tests; performance profiles follow Dolan and More (2002) in the
form of Agarwal et al. (NeurIPS 2021): the share of runs that reach a score. A dataset counts once,
by the mean over its splits, and a loss that diverges on it is its last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from benchmark.runs.run_table import RunTable
from benchmark.stats.intervals import Floats, diverges, drawn_weights, holm, percentile_interval

FEWEST_DATASETS, FEWEST_LOSSES = 3, 3
PERMUTATIONS, DRAWS = 9_999, 1_000
LEVELS = 200  # scores at most at which a profile is given
PLACE = ["setting", "batch_size", "metric"]
RANK_COLUMNS = [*PLACE, "loss", "rank", "datasets", "losses", "p_friedman", "critical"]
RANK_TEST_COLUMNS = [*PLACE, "loss", "against", "difference", "p_holm", "significant"]
PROFILE_COLUMNS = [*PLACE, "loss", "score", "share", "low", "high", "runs", "datasets"]


class RankComparison(NamedTuple):
    """Losses (L) over datasets (N); ranks start at 1 for the best, ties share their mean.

    ranks        average rank by loss, best first
    p_friedman   that all losses rank equally, by permutation; NaN below three losses or datasets
    p_holm       (L, L) table: two-sided z test of each pair of average ranks, after Holm
    critical     difference of average ranks that Nemenyi's test calls significant
    """

    datasets: int
    ranks: pd.Series[float]
    p_friedman: float
    p_holm: pd.DataFrame
    critical: float


def analyse_datasets(
    table: RunTable, metrics: Sequence[str], alpha: float = 0.05
) -> dict[str, pd.DataFrame]:
    """Return the tables "ranks", "rank_tests" and "profiles" of a study.

    Settings, batch sizes and metrics are compared apart. A loss takes part that was run on every
    dataset of its setting and batch size; below three datasets there are no rows. No pair is
    significant against Friedman's test.
    """
    ranks, tests, profiles = [], [], []
    for place, values, means in _places(table, metrics):
        datasets, rank, p_friedman, p_holm, critical = compare_ranks(means, alpha)
        if datasets < FEWEST_DATASETS:
            continue
        shared = (datasets, len(rank), p_friedman, critical)
        ranks += [(*place, loss, value, *shared) for loss, value in rank.items()]
        for loss, against in combinations(rank.index, 2):
            p = float(p_holm.loc[loss, against])
            significant = p <= alpha and not p_friedman > alpha
            tests.append((*place, loss, against, rank[against] - rank[loss], p, significant))
        profile = performance_profiles(values, 1 - alpha)
        profiles.append(profile.assign(**dict(zip(PLACE, place, strict=True))))
    return {
        "ranks": pd.DataFrame(ranks, columns=RANK_COLUMNS),
        "rank_tests": pd.DataFrame(tests, columns=RANK_TEST_COLUMNS),
        "profiles": pd.concat(profiles or [pd.DataFrame()]).reindex(columns=PROFILE_COLUMNS),
    }


def _places(
    table: RunTable, metrics: Sequence[str]
) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame, pd.DataFrame]]:
    """Yield each place with its scores: by (dataset, seed), and by dataset, a column per loss.

    A run that diverged has no score; a loss that diverges on a dataset has -inf there.
    """
    runs = table.attempts()
    runs = runs[runs["status"].isin(["ok", "diverged"])]
    scores = table.test_scores("last", metrics)
    key = ["dataset", "setting", "batch_size", "loss", "seed"]
    splits = scores.groupby([*key, "metric"], as_index=False)["value"].mean()
    for metric, values in splits.groupby("metric"):
        rows = runs.merge(values, on=key, how="left")
        rows = rows[rows["value"].notna() | (rows["status"] == "diverged")]
        for (setting, size), here in rows.groupby(["setting", "batch_size"]):
            cells = here.groupby(["dataset", "loss"])
            runs_of = cells.size()
            gone = cells["status"].agg(lambda part: (part == "diverged").sum())
            lost = [diverges(*counts) for counts in zip(gone, runs_of, strict=True)]
            means = cells["value"].mean().where(~np.array(lost), -np.inf).unstack()
            losses = means.columns[runs_of.unstack().notna().all()]
            by_seed: Any = here.assign(there=1.0).pivot(index=["dataset", "seed"], columns="loss")
            whole = by_seed["there"][losses].dropna().index
            yield (setting, size, metric), by_seed["value"][losses].loc[whole], means[losses]


def compare_ranks(scores: pd.DataFrame, alpha: float = 0.05) -> RankComparison:
    """Return the comparison of ``scores``: a row per dataset, a column per loss, mean over seeds.

    Datasets on which some loss has no score are left out: a rank needs all of them.
    """
    scores = scores.dropna()
    datasets, losses = scores.shape
    by_dataset = scores.rank(axis=1, ascending=False)
    ranks = by_dataset.mean().sort_values(kind="stable")
    step = np.sqrt(losses * (losses + 1) / (6 * max(datasets, 1)))
    enough = datasets >= FEWEST_DATASETS and losses >= FEWEST_LOSSES
    p_friedman = _friedman(by_dataset.to_numpy()) if enough else np.nan
    rank = ranks.to_numpy()
    z = np.abs(np.subtract.outer(rank, rank)) / step
    upper = np.triu_indices(losses, 1)
    adjusted = np.ones((losses, losses))
    adjusted[upper] = holm(2 * stats.norm.sf(z[upper]))
    adjusted = np.minimum(adjusted, adjusted.T)
    p_holm = pd.DataFrame(adjusted, index=ranks.index, columns=ranks.index)
    critical = stats.studentized_range.ppf(1 - alpha, losses, np.inf) / np.sqrt(2) * step
    return RankComparison(datasets, ranks, p_friedman, p_holm, float(critical))


def _friedman(ranks: Floats) -> float:
    """Return the p of equal ranks (N, L), by permutation within datasets.

    The chi-square distribution that scipy's ``friedmanchisquare`` takes needs more datasets than a
    study has.
    """

    def statistic(*columns: Floats, axis: int) -> Floats:
        sums = np.stack([column.sum(axis=axis) for column in columns])
        return np.asarray((sums**2).sum(axis=0))

    found = stats.permutation_test(
        tuple(ranks.T),
        statistic,
        permutation_type="samples",
        vectorized=True,
        alternative="greater",
        n_resamples=PERMUTATIONS,
        rng=np.random.default_rng(0),
    )
    return float(found.pvalue)


def performance_profiles(scores: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Return, by loss and ``score``, the share of runs that reach it, with its interval.

    ``scores`` has a row per (dataset, seed) and a column per loss, NaN where a run diverged and
    reaches nothing. They are divided by the best mean of their dataset, so that easy and hard
    datasets count alike. The interval is that of seeds drawn anew within each dataset, point by
    point.
    """
    dataset = scores.index.get_level_values(0)
    best = scores.groupby(dataset).mean().max(axis=1)
    values = scores.div(best.reindex(dataset).to_numpy(), axis=0).to_numpy()
    grid = np.unique(values[np.isfinite(values)])
    grid = grid[np.unique(np.linspace(0, len(grid) - 1, LEVELS).astype(int))] if len(grid) else grid
    reached = (values[..., None] >= grid).astype(float)  # (R, L, G); NaN is below everything
    drawn = np.tensordot(drawn_weights(dataset.to_numpy(), DRAWS), reached, 1) / max(len(scores), 1)
    low, high = percentile_interval(drawn, confidence)
    return pd.DataFrame(
        {
            "loss": np.repeat(list(scores.columns), len(grid)),
            "score": np.tile(grid, scores.shape[1]),
            "share": reached.mean(axis=0).ravel(),
            "low": low.ravel(),
            "high": high.ravel(),
            "runs": len(scores),
            "datasets": len(best),
        }
    )
