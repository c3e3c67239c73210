"""Losses at equal budgets: what trials choose, what a budget buys, and how sure the order is.

These are the tables ``budget_*.csv`` in the folder of statistics.

Scores are in [0, 1]; of two rule sets, "authors" is the published setting and "equal" the best of a
number of trials. Every table has dataset, setting (of the blocks as written), batch_size.

| file | one row per | further columns |
|---|---|---|
| budget_ranks | rule set and budget, loss | rules, trials (0 for authors), n, mean, ci_low, ci_high
(t, over seeds), rank, rank_low, rank_high (trials and seeds drawn again), seconds (of all runs
that led to the choice, and of one final run: run_seconds) |
| budget_curves | loss, trials | mean, ci_low, ci_high: expected best score on held-out training
classes, with a bootstrap band over trials and folds |
| budget_gaps | loss, budget | against "authors": the columns of a paired test over seeds, on the
test classes |
| budget_options | loss, option | share, p, rho: what the option explains of the scores of trials |
| budget_order | rule set and budget, what is drawn again ("seeds", "trials", "both") | kendall,
flipped, best_kept |
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy import special, stats

from benchmark.core.cells import Setting
from benchmark.core.errors import RunError
from benchmark.core.seeding import derive
from benchmark.runs.table import RunTable
from benchmark.stats.intervals import Floats, mean_sd, t_half_widths
from benchmark.stats.moderation import moderate
from benchmark.stats.paired import corrected, paired_tests
from benchmark.study.model import Study
from benchmark.study.trials.grid import FOLD, trial_of
from benchmark.study.trials.selection import AUTHORS, EQUAL, Choice, Selection

DRAWS = 2000
WHERE = ["dataset", "setting", "batch_size"]
Rule = tuple[str, int]  # rule set, trials
NAMED = "'references.trials' names a study with 'rules', which make trials"
PLACE = ["dataset", "setting", "batch_size", "loss"]  # of a table of trials


@dataclass(frozen=True)
class Place:
    """One dataset, setting and batch size: the trials and final runs of all losses.

    trials     {loss: (T + 1, F)}: scores on held-out classes, the published setting first; a trial
               without a score has 0, the worst there is
    finals     {(rule set, trials): (L, S)}: scores on the test classes by seed, NaN without one
    """

    where: tuple[str, str, int]
    losses: list[str]
    trials: dict[str, Floats]
    finals: dict[Rule, Floats]
    alpha: float

    @cached_property
    def redrawn(self) -> dict[str, Floats]:
        """{loss: (DRAWS, T)}: scores of trials drawn again, without the published setting."""
        return {
            loss: resampled(folds[1:], DRAWS, _generator("trials", *self.where, loss))
            for loss, folds in self.trials.items()
        }

    def curves(self) -> Iterator[dict[str, object]]:
        """Yield the rows of budget_curves."""
        for loss in self.losses:
            mean = expected_best(self.trials[loss][1:].mean(axis=1))
            bounds = [self.alpha / 2, 1 - self.alpha / 2]
            low, high = np.quantile(expected_best(self.redrawn[loss]), bounds, axis=0)
            for number, values in enumerate(zip(mean, low, high, strict=True), 1):
                names = ("mean", "ci_low", "ci_high")
                yield {"loss": loss, "trials": number, **dict(zip(names, values, strict=True))}

    def ranks(self) -> Iterator[dict[str, object]]:
        """Yield the rows of budget_ranks, without times."""
        for rule, finals in self.finals.items():
            n = np.isfinite(finals).sum(axis=1)
            mean, sd = mean_sd(finals)
            half = t_half_widths(sd, n, 1 - self.alpha)
            scores = np.nan_to_num(mean)
            order = order_under(scores, self.drawn(rule, "both"), self.alpha)
            rank = (-scores).argsort(kind="stable").argsort() + 1
            for row, loss in enumerate(self.losses):
                yield {
                    "rules": rule[0], "trials": rule[1], "loss": loss, "n": n[row],
                    "mean": mean[row], "ci_low": mean[row] - half[row],
                    "ci_high": mean[row] + half[row], "rank": rank[row],
                    "rank_low": order.low[row], "rank_high": order.high[row],
                }  # fmt: skip

    def order(self) -> Iterator[dict[str, object]]:
        """Yield the rows of budget_order."""
        for rule, finals in self.finals.items():
            scores = np.nan_to_num(mean_sd(finals)[0])
            for source in ("seeds", "trials", "both") if rule[1] else ("seeds",):
                found = asdict(order_under(scores, self.drawn(rule, source), self.alpha))
                found = {key: found[key] for key in ("kendall", "flipped", "best_kept")}
                yield {"rules": rule[0], "trials": rule[1], "source": source, **found}

    def drawn(self, rule: Rule, source: str) -> Floats:
        """Return (L, DRAWS) scores with seeds, trials or both drawn again.

        Only chosen settings were run on the test classes, so trials drawn again move a test score
        by what they change of the best score on the held-out classes.
        """
        finals, budget = self.finals[rule], rule[1]
        generator = _generator("seeds", *self.where, *rule)
        scores = np.repeat(np.nan_to_num(mean_sd(finals)[0])[:, None], DRAWS, axis=1)
        if source != "trials":
            scores = np.nan_to_num(seeds_drawn(finals, DRAWS, generator))
        if source == "seeds" or not budget:
            return scores
        best = [self.trials[loss][1 : budget + 1].mean(axis=1).max() for loss in self.losses]
        again = [self.redrawn[loss][:, :budget].max(axis=1) for loss in self.losses]
        moved: Floats = scores + np.array(again) - np.array(best)[:, None]
        return moved

    def gaps(self) -> pd.DataFrame:
        """Return the rows of budget_gaps."""
        tables = []
        published = self.finals.get((AUTHORS, 0))
        for (rules, budget), finals in self.finals.items():
            if rules == AUTHORS or published is None:
                continue
            _, sd = mean_sd(finals - published)
            n = np.isfinite(finals - published).sum(axis=1)
            shared = moderate(sd**2, n - 1.0)
            tests = paired_tests(finals, published, self.alpha, (shared.variance, shared.df))
            tables.append(tests.assign(loss=self.losses, trials=budget, family=str(budget)))
        if not tables:
            return pd.DataFrame()
        return corrected(pd.concat(tables, ignore_index=True), self.alpha).drop(columns="family")


def analyse_budgets(
    trials: RunTable, final: RunTable, metric: str, alpha: float = 0.05
) -> dict[str, pd.DataFrame]:
    """Return the tables of the list above by name, from the tables of trials and final runs."""
    scores = trial_scores(trials, metric)
    places = list(_places(scores, final, metric, alpha))
    tables = {
        "budget_ranks": _table(places, lambda place: pd.DataFrame(place.ranks())),
        "budget_curves": _table(places, lambda place: pd.DataFrame(place.curves())),
        "budget_gaps": _table(places, Place.gaps),
        "budget_options": _options(trials, scores),
        "budget_order": _table(places, lambda place: pd.DataFrame(place.order())),
    }
    tables["budget_ranks"] = _with_seconds(tables["budget_ranks"], trials, final)
    return tables


def _table(places: list[Place], rows: Callable[[Place], pd.DataFrame]) -> pd.DataFrame:
    tables = [
        pd.DataFrame([place.where] * len(table), columns=WHERE).join(table)
        for place in places
        if len(table := rows(place))
    ]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _places(scores: pd.DataFrame, final: RunTable, metric: str, alpha: float) -> Iterator[Place]:
    runs = [*PLACE, "seed"]
    values = final.test_scores("last", [metric]).query("split == 'test'")[[*runs, "value"]]
    finals = final.attempts().merge(values, how="left", on=runs)
    finals = finals.assign(
        rule=finals["setting"].map(rule_of), setting=finals["setting"].map(plain)
    )
    for where, part in scores.groupby(level=WHERE, sort=False):
        here = finals[(finals[WHERE] == list(where)).all(axis=1)]
        table = here.pivot(index=["rule", "loss"], columns="seed", values="value")
        losses = list(dict.fromkeys(part.index.get_level_values("loss")))
        rules = sorted(set(here["rule"]), key=lambda rule: rule[1])
        dataset, setting, size = map(str, where)
        yield Place(
            (dataset, setting, int(size)),
            losses,
            {loss: part.xs(loss, level="loss").fillna(0.0).to_numpy() for loss in losses},
            {rule: table.xs(rule).reindex(losses).to_numpy() for rule in rules},
            alpha,
        )


def rule_of(setting: str) -> Rule:
    """Return the rule set and number of trials of a final setting, ("equal", 16) of x~equal16.

    Raise RunError for any other setting.
    """
    name = ("", *Setting.from_label(setting).options)[-1]
    if name == AUTHORS:
        return AUTHORS, 0
    if found := re.fullmatch(f"{EQUAL}([0-9]{{1,2}})", name):
        return EQUAL, int(found[1])
    raise RunError(f"runs under '{setting}' are no final runs that trials chose; {NAMED}")


def _options(trials: RunTable, scores: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of budget_options: every setting that differs among the trials of a loss."""
    drawn = scores.mean(axis=1, skipna=False).fillna(0.0).rename("score").reset_index()
    drawn = drawn[drawn["trial"] > 0]
    runs = trials.runs.drop_duplicates(["setting", "loss", "batch_size"])
    runs = with_trials(runs)
    columns = [name for name in map(str, runs) if name.startswith(("loss.", "recipe."))]
    rows = []
    for where, part in drawn.groupby(PLACE, sort=False):
        here = runs[(runs[PLACE[1:]] == list(where[1:])).all(axis=1)]
        values = here.set_index("trial").loc[part["trial"]]
        for name in columns:
            column = values[name]
            if column.map(repr).nunique() > 1:
                found = explained_share(column.astype(float), part["score"].to_numpy())
                rows.append(dict(zip(PLACE, where, strict=True)) | {"option": name, **found})
    return pd.DataFrame(rows)


def _with_seconds(ranks: pd.DataFrame, trials: RunTable, final: RunTable) -> pd.DataFrame:
    """Return the table with the time of the runs that led to each choice, and of a final run."""
    search, ends = trials.costs(), final.costs()
    search = with_trials(search).assign(dataset=search["dataset"].str.rpartition(FOLD)[0])
    ends = ends.assign(rule=ends["setting"].map(rule_of), setting=ends["setting"].map(plain))
    one = ends.groupby([*PLACE, "rule"])["total_seconds"].mean()
    spent = search.groupby([*PLACE, "trial"])["total_seconds"].sum().unstack("trial").fillna(0.0)
    keys = [
        ((row.dataset, row.setting, row.batch_size, row.loss), (row.rules, row.trials))
        for row in ranks.itertuples()
    ]
    return ranks.assign(
        seconds=[
            float(spent.loc[[where], 1:budget].sum(axis=1).iloc[0]) for where, (_, budget) in keys
        ],
        run_seconds=[one.get((*where, rule), np.nan) for where, rule in keys],
    )


def _generator(*role: str | int) -> np.random.Generator:
    return np.random.default_rng(derive(0, "budgets", *role))


def trial_scores(table: RunTable, metric: str) -> pd.DataFrame:
    """Return the score of every trial: a row per dataset, setting, batch size, loss and trial.

    Columns are (fold, seed). ``setting`` is that of the blocks as written. A run without a score
    (diverged) leaves NaN.
    """
    scores = table.test_scores("last", [metric])
    runs = table.attempts().merge(
        scores.drop(columns=["run_id", "epoch"]), how="left",
        on=["dataset", "setting", "loss", "base_loss", "batch_size", "seed"],
    )  # fmt: skip
    whole = runs["dataset"].str.rpartition(FOLD)
    if len(other := runs[whole[1] != FOLD]):
        raise RunError(f"runs on '{other['dataset'].iloc[0]}' are no trials on a fold; {NAMED}")
    runs = with_trials(runs).assign(dataset=whole[0], fold=whole[2].astype(int))
    index = [*PLACE, "trial"]
    return runs.pivot(index=index, columns=["fold", "seed"], values="value").sort_index()


def with_trials(runs: pd.DataFrame) -> pd.DataFrame:
    """Return rows of runs with ``trial``, their number, and ``setting`` as the blocks have it.

    Raise RunError for a run that is no trial.
    """
    try:
        trials = [trial_of(Setting.from_label(label)) for label in runs["setting"]]
    except ValueError as error:
        raise RunError(f"{error}; {NAMED}") from error
    return runs.assign(trial=trials, setting=runs["setting"].map(plain))


def plain(setting: str) -> str:
    """Return the setting of the block as written, "x" of "x~equal16"."""
    found = Setting.from_label(setting)
    return Setting(found.backbone, found.options[:-1]).label


def select(study: Study, table: RunTable) -> Selection:
    """Return the best setting of each loss after each number of trials of ``study``.

    The published setting is chosen from no trial. Raise RunError when a trial has no result.
    """
    assert study.trials is not None
    absent = table.runs[~table.runs["status"].isin(["ok", "diverged"])]
    if len(absent):
        raise RunError(
            f"{len(absent)} of {len(table.runs)} trials of study '{study.name}' have no result "
            f"(first: {absent['run_id'].iloc[0]}); run the study again before choosing"
        )
    means = trial_scores(table, study.metrics[0]).mean(axis=1, skipna=False)
    overrides = {
        (block.name, loss.label, trial_of(block.setting)): block.overrides
        for block in study.blocks
        for loss in block.losses
    }
    choices = []
    for block, dataset, size, loss, budget in study.trials.choices:
        scores = means.loc[dataset, block.setting.label, size, loss]
        trial = best_trial(scores, budget)
        score = None if pd.isna(scores[trial]) else float(scores[trial])
        override = overrides[block.name, loss, trial]
        choices.append(Choice(block.name, dataset, size, loss, budget, trial, score, override))
    return Selection.of(study, choices)


def best_trial(scores: pd.Series, budget: int) -> int:
    """Return the best of the first ``budget`` trials, which start at 1; 0 for a budget of none.

    A trial without a score is worse than any other; the earlier of two equal ones is taken.
    """
    drawn = scores.loc[1:budget].fillna(-1.0)
    return int(drawn.to_numpy().argmax()) + 1 if budget else 0


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
