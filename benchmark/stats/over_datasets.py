"""Losses compared over datasets: average ranks, Friedman's test, Holm's comparisons, profiles.

Demsar (JMLR 2006) recommends the tests; performance profiles follow Dolan and More (2002) in the
form of Agarwal et al. (NeurIPS 2021): the share of runs that reach a score. A dataset counts once,
by the mean over its splits. A loss that diverges on a dataset is the last there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from benchmark.runs.run_table import RunTable
from benchmark.stats.intervals import Floats, diverges, drawn_weights, holm, percentile_interval
from benchmark.stats.queries import LOSS_CELL

FEWEST_DATASETS = 3
FEWEST_LOSSES = 3
PERMUTATIONS = 9_999
DRAWS = 1_000
LEVELS = 200  # scores at most at which a profile is given
PLACE = ["setting", "batch_size", "metric"]
RANK_COLUMNS = [*PLACE, "loss", "rank", "datasets", "losses", "p_friedman", "critical"]
RANK_TEST_COLUMNS = [*PLACE, "loss", "against", "difference", "p_holm", "significant"]
PROFILE_COLUMNS = [*PLACE, "loss", "score", "share", "low", "high", "runs", "datasets"]


def analyse_datasets(
    table: RunTable, metrics: Sequence[str], alpha: float = 0.05
) -> dict[str, pd.DataFrame]:
    """Return the tables "ranks", "rank_tests" and "profiles" of a study.

    Settings, batch sizes and metrics are compared apart. A loss takes part if it was run on every
    dataset of its setting and batch size. Below three datasets there are no rows.
    """
    columns = {"ranks": RANK_COLUMNS, "rank_tests": RANK_TEST_COLUMNS, "profiles": PROFILE_COLUMNS}
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in columns}
    for place, values, means in _places(table, metrics):
        if len(means.dropna()) < FEWEST_DATASETS:
            continue
        facts = dict(zip(PLACE, place, strict=True))
        tables_here = (*compare_ranks(means, alpha), performance_profiles(values, 1 - alpha))
        for name, rows in zip(columns, tables_here, strict=True):
            parts[name].append(rows.assign(**facts))
    tables = {}
    for name, names in columns.items():
        rows = pd.concat(parts[name] or [pd.DataFrame()], ignore_index=True)
        tables[name] = rows.reindex(columns=names)
    return tables


def _places(
    table: RunTable, metrics: Sequence[str]
) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame, pd.DataFrame]]:
    """Yield each place with two tables of scores, by (dataset, seed) and by dataset.

    The tables have a column per loss. A run that diverged has no score. A loss that diverges on a
    dataset has the mean -inf there.
    """
    runs = table.attempts()
    runs = runs[runs["status"].isin(["ok", "diverged"])]
    scores = table.test_scores("last", metrics)
    key = [*LOSS_CELL, "seed"]
    splits = scores.groupby([*key, "metric"], as_index=False)["value"].mean()
    for metric, values in splits.groupby("metric"):
        rows = runs.merge(values, on=key, how="left")
        rows = rows[rows["value"].notna() | (rows["status"] == "diverged")]
        for (setting, size), in_place in rows.groupby(["setting", "batch_size"]):
            lost = in_place["status"] == "diverged"
            cells = in_place.assign(lost=lost).groupby(["dataset", "loss"])
            counts = cells["lost"].agg(["sum", "size"])
            usable = [not diverges(*cell) for cell in counts.itertuples(index=False)]
            means = cells["value"].mean().where(np.array(usable), -np.inf).unstack()
            on_all_datasets = counts["size"].unstack().notna().all()
            losses = means.columns[on_all_datasets]
            by_seed: Any = in_place.pivot(index=["dataset", "seed"], columns="loss")
            whole = by_seed["status"][losses].dropna().index
            values_of_seeds = by_seed["value"][losses].loc[whole]
            yield (setting, size, metric), values_of_seeds, means[losses]


def compare_ranks(scores: pd.DataFrame, alpha: float = 0.05) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the average rank of each loss, best first, and the test of each pair of losses.

    ``scores`` are means over seeds, with a row for each of at least three datasets and a column per
    loss. Datasets on which a loss has no score are left out. Tied losses share their mean rank. No
    pair is significant if Friedman's test, which needs three losses, is not.
    """
    scores = scores.dropna()
    datasets, losses = scores.shape
    by_dataset = scores.rank(axis=1, ascending=False)
    means = by_dataset.mean().sort_values(kind="stable")
    step = np.sqrt(losses * (losses + 1) / (6 * datasets))
    p_friedman = _friedman(by_dataset.to_numpy()) if losses >= FEWEST_LOSSES else np.nan
    quantile = stats.studentized_range.ppf(1 - alpha, losses, np.inf)
    critical = quantile / np.sqrt(2) * step
    rank = means.to_numpy()
    ranks = {
        "loss": means.index,
        "rank": rank,
        "datasets": datasets,
        "losses": losses,
        "p_friedman": p_friedman,
        "critical": critical,
    }
    one, two = np.triu_indices(losses, 1)
    difference = rank[two] - rank[one]
    p_holm = holm(2 * stats.norm.sf(np.abs(difference) / step))
    tests = {
        "loss": means.index[one],
        "against": means.index[two],
        "difference": difference,
        "p_holm": p_holm,
        "significant": (p_holm <= alpha) & (not p_friedman > alpha),
    }
    return pd.DataFrame(ranks), pd.DataFrame(tests)


def _friedman(ranks: Floats) -> float:
    """Return the p of equal ranks (N, L), by permutation within datasets.

    scipy's ``friedmanchisquare`` takes a chi-square distribution, which needs more datasets than a
    study has.
    """

    def statistic(*columns: Floats, axis: int) -> Floats:
        sums = np.stack([column.sum(axis=axis) for column in columns])
        return np.asarray((sums**2).sum(axis=0))

    test = stats.permutation_test(
        tuple(ranks.T),
        statistic,
        permutation_type="samples",
        vectorized=True,
        alternative="greater",
        n_resamples=PERMUTATIONS,
        rng=np.random.default_rng(0),
    )
    return float(test.pvalue)


def performance_profiles(scores: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Return, by loss and ``score``, the share of runs that reach it, with its interval.

    ``scores`` has a row per (dataset, seed) and a column per loss. The score of a diverged run is
    NaN, and the run reaches no score. Scores are divided by the best mean of their dataset, so that
    easy and hard datasets count alike. For the interval of each point, seeds are drawn again within
    each dataset.
    """
    dataset = scores.index.get_level_values(0)
    best = scores.groupby(dataset).mean().max(axis=1)
    best_of_rows = best.reindex(dataset).to_numpy()
    values = scores.div(best_of_rows, axis=0).to_numpy()
    grid = np.unique(values[np.isfinite(values)])
    if len(grid):
        levels = np.linspace(0, len(grid) - 1, LEVELS).astype(int)
        grid = grid[np.unique(levels)]
    reached = (values[..., None] >= grid).astype(float)  # (R, L, G); NaN is below everything
    weights = drawn_weights(dataset.to_numpy(), DRAWS)
    drawn = np.tensordot(weights, reached, 1) / max(len(scores), 1)
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
