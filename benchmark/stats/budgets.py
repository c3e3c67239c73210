"""Losses at equal budgets: what trials choose, what a budget buys, and how sure the order is.

These are the tables ``budget_*.csv`` in the folder of statistics, described with their columns in
docs/background/statistics.md. Scores are in [0, 1]; of two rule sets, "authors" is the published
setting and "equal" the best of a number of trials.
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special, stats

from benchmark.core.errors import RunError
from benchmark.core.seeding import derive
from benchmark.runs.run_table import RunTable
from benchmark.stats.intervals import Floats, mean_sd, t_intervals
from benchmark.stats.paired import corrected, paired_tests, shared_variances
from benchmark.study.model import Study
from benchmark.study.trials import AUTHORS, EQUAL, Choice, trial_setting

DRAWS = 2000
WHERE = ["dataset", "setting", "batch_size"]
PLACE = [*WHERE, "loss"]
# Columns of runs.csv, and what they are called here.
COLUMNS = {
    "trials.dataset": "dataset",
    "trials.setting": "setting",
    "trials.fold": "fold",
    "trials.trial": "trial",
    "trials.budget": "trials",
}
SPLITS = ["held_out", "test"]  # the first of a trial, the second of a final run
BINS = 3  # of the values of an option
ORDER = ["rules", "trials", "source", "kendall", "flipped", "best_kept"]
# What the bounds of a rank mean, for a reader.
RANK_INTERVAL = (
    "seeds and the trials that chose drawn again, widened to neighbours in rank that do not differ "
    "significantly"
)


def analyse_budgets(
    trials: RunTable, final: RunTable, metric: str, alpha: float = 0.05
) -> dict[str, pd.DataFrame]:
    """Return the tables of the list above by name, from the tables of trials and final runs."""
    for runs, column, kind in (
        (trials.runs, "trials.trial", "trials"),
        (final.runs, "trials.budget", "final runs that trials chose"),
    ):
        if column not in runs or runs[column].isna().any():
            raise RunError(
                f"not all runs are {kind} (column '{column}' of runs.csv, which 'collect' writes): "
                "'references.trials' names a study with 'rules', and 'select' writes the study of "
                "its final runs"
            )
    scores = trial_scores(trials, metric)
    finals = _scores(final, metric)
    tables: dict[str, list[pd.DataFrame]] = {
        f"budget_{name}": [] for name in ("ranks", "curves", "gaps", "options", "order")
    }
    for where, trial_rows in scores.groupby(level=WHERE, sort=False):
        is_here = (finals[WHERE] == list(where)).all(axis=1)
        final_rows = finals[is_here]
        by_seed = final_rows.pivot(index=["trials", "loss"], columns="seed", values="value")
        # a trial without a score counts as 0, the lowest score
        folds = {}
        for loss, rows in trial_rows.groupby(level="loss", sort=False):
            folds[str(loss)] = rows.fillna(0.0).to_numpy()
        by_budget = {}
        for budget in sorted(set(final_rows["trials"])):
            by_loss = by_seed.xs(budget).reindex([*folds])
            by_budget[budget] = by_loss.to_numpy()
        for name, table in _tables_at(where, folds, by_budget, alpha):
            columns = pd.DataFrame([where] * len(table), columns=WHERE)
            tables[f"budget_{name}"].append(columns.join(table))
    whole = {}
    for name, parts in tables.items():
        whole[name] = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    ranks = _with_seconds(whole["budget_ranks"], trials, final)
    return whole | {"budget_ranks": ranks, "budget_options": _options(trials, scores)}


def _tables_at(
    where: tuple[Any, ...], trials: dict[str, Floats], finals: dict[int, Floats], alpha: float
) -> list[tuple[str, pd.DataFrame]]:
    """Return the rows of the tables, by name, for one dataset, setting and batch size.

    trials     {loss: (T + 1, F)}: scores on held-out classes, the published setting first
    finals     {trials: (L, S)}: scores on the test classes by seed; NaN where there is no score
    """
    tables = []
    redrawn = {}
    for loss, folds in trials.items():
        seed = derive(0, "budgets", "trials", *where, loss)
        generator = np.random.default_rng(seed)
        redrawn[loss] = resampled(folds[1:], DRAWS, generator)
        curve = _curve(loss, folds[1:], redrawn[loss], alpha)
        tables.append(("curves", curve))
    gaps = []
    for budget, scores in finals.items():
        rules = EQUAL if budget else AUTHORS
        mean, _ = mean_sd(scores)
        level = np.nan_to_num(mean)
        seed = derive(0, "budgets", "seeds", *where, rules, budget)
        drawn_means = seeds_drawn(scores, DRAWS, np.random.default_rng(seed))
        of_seeds = np.nan_to_num(drawn_means)
        draws = {"seeds": of_seeds}
        if budget:
            moves = _moves(trials, redrawn, budget)
            draws["trials"] = level[:, None] + moves
            draws["both"] = of_seeds + moves
        # the order under both sources, where there are both, is the last
        for source, drawn in draws.items():
            order = order_under(level, drawn, alpha)
            row = order | {"rules": rules, "trials": budget, "source": source}
            tables.append(("order", pd.DataFrame([row], columns=ORDER)))
        ranks = _ranks(scores, level, order, alpha)
        named = {"rules": rules, "trials": budget, "loss": [*trials]}
        tables.append(("ranks", pd.DataFrame(named | ranks)))
        if budget and 0 in finals:
            shared = shared_variances(scores - finals[0])
            tests = paired_tests(scores, finals[0], alpha, shared)
            gaps.append(tests.assign(loss=[*trials], trials=budget, family=budget))
    if gaps:
        tests = corrected(pd.concat(gaps, ignore_index=True), alpha)
        tables.append(("gaps", tests.drop(columns="family")))
    return tables


def _curve(loss: str, folds: Floats, redrawn: Floats, alpha: float) -> pd.DataFrame:
    """Return the expected best score of a loss after 1, 2, ... trials.

    folds      (T, F): scores of the trials
    redrawn    (draws, T): scores of trials drawn again
    """
    mean = expected_best(folds.mean(axis=1))
    low, high = np.quantile(expected_best(redrawn), [alpha / 2, 1 - alpha / 2], axis=0)
    trials = np.arange(1, len(mean) + 1)
    curve = {"loss": loss, "trials": trials, "mean": mean, "ci_low": low, "ci_high": high}
    return pd.DataFrame(curve)


def _moves(trials: dict[str, Floats], redrawn: dict[str, Floats], budget: int) -> Floats:
    """Return (L, draws): how far trials drawn again move the best score on the held-out classes.

    Only chosen settings were run on the test classes, so a test score is moved as far.
    """
    best = [folds[1 : budget + 1].mean(axis=1).max() for folds in trials.values()]
    best_again = [scores[:, :budget].max(axis=1) for scores in redrawn.values()]
    before = np.array(best)[:, None]
    moves: Floats = np.array(best_again) - before
    return moves


def _ranks(scores: Floats, level: Floats, order: dict[str, Any], alpha: float) -> dict[str, Any]:
    """Return mean, interval and rank, with its bounds, of each loss after a number of trials.

    scores    (L, S): scores by seed
    level     (L,): means; 0 where there is no score
    order     how the order of the means holds, of ``order_under``
    """
    n, mean, _, low, high = t_intervals(scores, 1 - alpha)
    by_rank = (-level).argsort(kind="stable")
    rank = by_rank.argsort() + 1
    sure = ordered(scores[by_rank], alpha)
    return {
        "n": n,
        "mean": mean,
        "ci_low": low,
        "ci_high": high,
        "rank": rank,
        "rank_low": np.minimum(order["rank_low"], rank - ~sure[rank - 1]),
        "rank_high": np.maximum(order["rank_high"], rank + ~sure[rank]),
    }


def _named(table: RunTable) -> pd.DataFrame:
    """Return the runs with ``fold`` and ``trial`` of a trial, or ``trials`` of a final run.

    ``dataset`` and ``setting`` are the labels of the block as it was written.
    """
    runs = table.runs.drop(columns=["dataset", "setting"]).rename(columns=COLUMNS)
    numbers = runs.columns.intersection(["fold", "trial", "trials"])
    return runs.astype(dict.fromkeys(numbers, "int64"))


def _scores(table: RunTable, metric: str) -> pd.DataFrame:
    """Return the score of every run; NaN for a diverged run."""
    scores = table.test_scores("last", [metric])
    values = scores.loc[scores["split"].isin(SPLITS), ["run_id", "value"]]
    return _named(table).merge(values, how="left", on="run_id")


def trial_scores(table: RunTable, metric: str) -> pd.DataFrame:
    """Return the score of every trial: a row per dataset, setting, batch size, loss and trial.

    Columns are (fold, seed). ``setting`` is the setting of the blocks as written. The score of a
    diverged run is NaN.
    """
    index = [*PLACE, "trial"]
    by_fold = _scores(table, metric).pivot(index=index, columns=["fold", "seed"], values="value")
    return by_fold.sort_index()


def _options(trials: RunTable, scores: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of budget_options: every setting that differs among the trials of a loss."""
    means = scores.mean(axis=1, skipna=False).fillna(0.0)
    drawn = means.rename("score").reset_index()
    drawn = drawn[drawn["trial"] > 0]
    runs = _named(trials).drop_duplicates([*PLACE[1:], "trial"])
    options = [name for name in map(str, runs) if name.startswith(("loss.", "recipe."))]
    rows = []
    for (dataset, *place), trial_rows in drawn.groupby(PLACE, sort=False):
        in_place = (runs[PLACE[1:]] == place).all(axis=1)
        settings = runs[in_place].set_index("trial").loc[trial_rows["trial"]]
        for name in options:
            values = settings[name]
            if values.map(repr).nunique() > 1:
                explained = explained_share(values.astype(float), trial_rows["score"].to_numpy())
                cell = dict(zip(PLACE, (dataset, *place), strict=True))
                rows.append(cell | {"option": name, **explained})
    return pd.DataFrame(rows)


def _with_seconds(ranks: pd.DataFrame, trials: RunTable, final: RunTable) -> pd.DataFrame:
    """Return ``ranks`` with the time of the trials behind each choice, and of a final run."""
    of_trials = _named(trials).query("status == 'ok'")
    search = of_trials.groupby([*PLACE, "trial"])["total_seconds"].sum()
    spent = search.unstack("trial").fillna(0.0)
    of_finals = _named(final).query("status == 'ok'")
    ends = of_finals.groupby([*PLACE, "trials"])["total_seconds"].mean()
    seconds = []
    run_seconds = []
    for key in ranks[[*PLACE, "trials"]].itertuples(index=False, name=None):
        *place, budget = key
        of_trials_so_far = spent.loc[[tuple(place)], 1:budget]
        seconds.append(of_trials_so_far.sum(axis=1).iloc[0])
        run_seconds.append(ends.get(key, np.nan))
    return ranks.assign(seconds=seconds, run_seconds=run_seconds)


def select(study: Study, table: RunTable) -> list[Choice]:
    """Return the best setting of each loss after each number of trials of ``study``.

    After no trial it is the published setting. Raise RunError when a trial has no result.
    """
    assert study.trials is not None
    absent = table.runs[~table.runs["status"].isin(["ok", "diverged"])]
    if len(absent):
        raise RunError(
            f"{len(absent)} of {len(table.runs)} trials of study '{study.name}' have no result "
            f"(first: {absent['run_id'].iloc[0]}); run the study again before choosing"
        )
    means = trial_scores(table, study.metrics[0]).mean(axis=1, skipna=False)
    overrides = {}
    for block in study.blocks:
        for loss in block.losses:
            overrides[block.name, loss.label, block.setting.label] = block.overrides
    choices = []
    for block, dataset, size, name, budget in study.trials.choices:
        scores = means.loc[dataset, block.setting.label, size, name]
        trial = best_trial(scores, budget)
        score = None if pd.isna(scores[trial]) else float(scores[trial])
        setting = trial_setting(block.setting, trial)
        override = overrides[block.name, name, setting.label]
        choices.append(Choice(block.name, dataset, size, name, budget, trial, score, override))
    return choices


def outside_of_seeds(
    again: RunTable, final: RunTable, metric: str, alpha: float = 0.05
) -> list[str]:
    """Return what ran ``again`` with all its seeds, and has its mean outside of their interval."""
    place = [*PLACE, "trials"]
    new, old = (
        _scores(table, metric).pivot(index=place, columns="seed", values="value")
        for table in (again, final)
    )
    means = t_intervals(new.to_numpy(), 1 - alpha)[1]
    _, _, _, low, high = t_intervals(old.loc[new.index].to_numpy(), 1 - alpha)
    problems = []
    for name, value, *ends in zip(new.index, means, low, high, strict=True):
        if not ends[0] <= value <= ends[1]:
            shown = f"{value:.4f}, outside of [{ends[0]:.4f}, {ends[1]:.4f}]"
            problems.append(f"{name[3]} run again has mean {metric} {shown} of its seeds")
    return problems


def best_trial(scores: pd.Series, budget: int) -> int:
    """Return the number of the best of the first ``budget`` trials, counted from 1.

    0 stands for a budget of no trial. A trial without a score is worse than any other. The earlier
    of two equal trials is taken.
    """
    drawn = scores.loc[1:budget].fillna(-1.0)
    if not budget:
        return 0
    return int(drawn.to_numpy().argmax()) + 1


def expected_best(scores: Floats) -> Floats:
    """Return (..., T): the expected best of 1, 2, ... of the scores (..., T) of trials.

    ``n`` of the T are drawn without replacement. The score of rank i (1 is the lowest) is the best
    in C(i - 1, n - 1) of C(T, n) draws. This is the unbiased form of Dodge et al. (EMNLP
    2019), whose own draws with replacement are biased (Tang et al., ACL 2020).
    """
    trials = scores.shape[-1]
    rank = np.arange(trials)
    drawn = np.arange(1, trials + 1)[:, None]
    as_best = special.comb(rank, drawn - 1)
    weights = as_best / special.comb(trials, drawn)
    best: Floats = np.sort(scores, axis=-1) @ weights.T
    return best


def resampled(folds: Floats, draws: int, generator: np.random.Generator) -> Floats:
    """Return (draws, T) scores of trials drawn again, with the folds drawn again as well.

    ``folds`` (T, F) are the scores of one loss. Both are drawn with replacement.
    """
    trials, count = folds.shape
    drawn_trials = generator.integers(trials, size=(draws, trials))
    drawn_folds = generator.integers(count, size=(draws, count))
    scores = folds[drawn_trials[:, :, None], drawn_folds[:, None, :]]
    means: Floats = scores.mean(axis=2)
    return means


def explained_share(values: pd.Series, scores: Floats) -> dict[str, float]:
    """Return what one option explains of the scores (T,) of trials: share, p and rho.

    ``share`` is the part of the variance of the ranks that lies between ``BINS`` equally full bins
    of the option's values, less the part that chance alone would put there (epsilon squared, at
    least 0). ``p`` is of the test of Kruskal and Wallis. ``rho`` is Spearman's correlation.
    """
    distinct = values.nunique()
    if distinct < 2 or len(np.unique(scores)) < 2:
        return {"share": 0.0, "p": 1.0, "rho": 0.0}
    groups = values
    if distinct > BINS:
        groups = pd.qcut(values.rank(method="first"), BINS, labels=False)
    by_group = [scores[groups.to_numpy() == group] for group in groups.unique()]
    n = len(scores)
    k = len(by_group)
    h = float(stats.kruskal(*by_group).statistic)
    share = 0.0
    if n > k:
        share = max(0.0, (h - k + 1) / (n - k))
    return {
        "share": share,
        "p": float(stats.chi2.sf(h, k - 1)),
        "rho": float(stats.spearmanr(values, scores).statistic),
    }


def order_under(scores: Floats, draws: Floats, alpha: float = 0.05) -> dict[str, Any]:
    """Return how the order of ``scores`` (L,), the best first, holds in ``draws`` (L, B).

    rank_low, rank_high   (L,): bounds of the middle 1 - ``alpha`` of the ranks
    kendall               mean Kendall tau between the order of a draw and the order of the scores
    flipped               mean share of pairs of losses in the opposite order
    best_kept             share of draws with the same best loss
    """
    ranks = stats.rankdata(-draws, axis=0)
    low, high = np.quantile(ranks, [alpha / 2, 1 - alpha / 2], axis=1)
    first, second = np.triu_indices(len(scores), 1)
    as_scored = np.sign(scores[first] - scores[second])[:, None]
    agreement = np.sign(draws[first] - draws[second]) * as_scored
    same_best = draws.argmax(axis=0) == scores.argmax()
    return {
        "rank_low": low,
        "rank_high": high,
        "kendall": float(agreement.mean()),
        "flipped": float((agreement < 0).mean()),
        "best_kept": float(same_best.mean()),
    }


def ordered(scores: Floats, alpha: float) -> NDArray[np.bool_]:
    """Return (L + 1,): is the step from a loss to the next in ``scores`` (L, S) significant?

    The test is paired over seeds, with a variance shared by all pairs of losses, after Holm over
    the steps. The first and the last entry, outside of the losses, are True.
    """
    if len(scores) == 1:
        return np.array([True, True])
    first, second = np.triu_indices(len(scores), 1)
    variance, df = shared_variances(scores[first] - scores[second])
    steps = second == first + 1
    shared = (variance[steps], df[steps])
    tests = paired_tests(scores[:-1], scores[1:], alpha, shared)
    tested = corrected(tests.assign(family="ranks"), alpha)
    return np.array([True, *tested["significant"], True])


def seeds_drawn(finals: Floats, draws: int, generator: np.random.Generator) -> Floats:
    """Return (L, draws) means of final scores (L, S), with the seeds drawn again for all alike."""
    losses, count = finals.shape
    seeds = generator.integers(count, size=(draws, count))
    drawn = finals[:, seeds].reshape(-1, count)
    means, _ = mean_sd(drawn)
    return means.reshape(losses, draws)
