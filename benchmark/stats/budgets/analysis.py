"""The tables of losses at equal budgets: ``budget_*.csv`` in the folder of statistics.

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

from benchmark.core.cells import Setting
from benchmark.core.errors import RunError
from benchmark.core.seeding import derive
from benchmark.runs.table import RunTable
from benchmark.stats.budgets.chosen import NAMED, PLACE, plain, trial_scores, with_trials
from benchmark.stats.budgets.expected import (
    expected_best,
    explained_share,
    order_under,
    resampled,
    seeds_drawn,
)
from benchmark.stats.intervals import Floats, mean_sd, t_half_widths
from benchmark.stats.moderation import moderate
from benchmark.stats.paired import corrected, paired_tests
from benchmark.study.trials.grid import FOLD
from benchmark.study.trials.selection import AUTHORS, EQUAL

DRAWS = 2000
WHERE = ["dataset", "setting", "batch_size"]
Rule = tuple[str, int]  # rule set, trials


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
