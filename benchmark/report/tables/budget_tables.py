"""Losses at equal budgets of trials: their scores and order, and which options mattered."""

from collections.abc import Callable, Iterator, Mapping

import pandas as pd

from benchmark.core.words import (
    DASH,
    count,
    duration,
    interval,
    p_value,
    percent,
    plain,
    points,
    signed,
    whole,
)
from benchmark.report.answer_of_trials import of_heads
from benchmark.report.labels import condition_label, metric_label
from benchmark.report.row_types import BudgetRow, OptionRow, OrderRow
from benchmark.report.study_results import StudyResults, records, rows_of
from benchmark.report.table import (
    Column,
    Table,
    TableCell,
    filled,
    marks,
    number_cell,
    numbers,
    words,
)
from benchmark.report.tables import TABLES
from benchmark.report.tables.loss_tables import as_printed, ordered
from benchmark.stats.budgets import RANK_INTERVAL
from benchmark.study.trials import AUTHORS

DRAWN = {"seeds": "seeds", "trials": "trials and folds", "both": "all of them"}
Budgets = Mapping[int, BudgetRow]  # results of a loss by number of trials
BudgetCell = Callable[[BudgetRow], TableCell]


def rule_words(trials: int) -> str:
    """Return "Authors", "1 trial" or "16 trials"."""
    return count(trials, "trial") if trials else AUTHORS.capitalize()


@TABLES.register("budgets", display="Losses at equal budgets", of_trials=True)
def budgets(inputs: StudyResults) -> Table:
    """Return one row per loss: the score under each rule set, best after all trials first."""
    ranks = inputs.some("budget_ranks")
    budgets = sorted(ranks["trials"].unique())
    most = budgets[-1]
    metric = metric_label(inputs.headline)

    def score(budget: int) -> Column:
        def cell(results: Budgets) -> TableCell:
            result = results[budget]
            if not result.n:
                return TableCell("diverged", tone="bad")
            values = (result.mean, result.ci_low, result.ci_high)
            text = f"{percent(result.mean)} {interval(result.ci_low, result.ci_high, percent)}"
            return TableCell(text, result.mark, numbers=values)

        # the page has the figure of all rule sets beside the table
        ends = budget in (budgets[0], most)
        return Column((metric, rule_words(budget)), ("mean", "low", "high"), cell=cell, paged=ends)

    def rank(budget: int) -> Column:
        def cell(results: Budgets) -> TableCell:
            result = results[budget]
            text = f"{result.rank:.0f} [{result.rank_low:.0f}, {result.rank_high:.0f}]"
            return TableCell(text, numbers=(result.rank, result.rank_low, result.rank_high))

        return Column(("Rank [interval]", rule_words(budget)), ("rank", "low", "high"), cell=cell)

    def tested(
        header: str, parts: tuple[str, ...], cell: Callable[[BudgetRow], TableCell]
    ) -> Column:
        def tested_cell(results: Budgets) -> TableCell:
            is_tested = pd.notna(results[most].significant)
            return cell(results[most]) if is_tested else TableCell(DASH, tone="muted")

        return Column((f"{rule_words(most)} − authors", header), parts, cell=tested_cell)

    def difference(test: BudgetRow) -> TableCell:
        mean = test.difference
        bounds = (test.ci_low_of_test, test.ci_high_of_test)
        tone = ""
        if test.significant:
            tone = "good" if mean > 0 else "bad"
        return TableCell(f"{points(mean)} {interval(*bounds)}", numbers=(mean, *bounds), tone=tone)

    def seconds(results: Budgets) -> TableCell:
        return number_cell(duration, results[most].seconds)

    def name(results: Budgets) -> TableCell:
        loss = results[most].loss
        label = inputs.label(loss)
        study = inputs.study
        if study.references.field and loss == study.comparison.baseline:
            return TableCell(f"{label} (the challenger)", mark="own")
        return TableCell(label)

    columns = [
        Column(("", "Loss"), numeric=False, cell=name),
        *map(score, budgets),
        rank(most),
        rank(budgets[0]),
        tested("Points", ("difference", "low", "high"), difference),
        tested("p (Holm)", ("p",), lambda test: number_cell(p_value, test.p_holm)),
        Column(("Time", f"of {rule_words(most)}"), ("seconds",), cell=seconds, paged=False),
    ]
    caption = (
        f"Test {metric} in percent with its {inputs.confidence} t interval over "
        f"{int(ranks['n'].max())} fresh seeds. “Authors”: as published. “k trials”: the "
        "best of the first k trials, chosen on training classes that were held out, never on the "
        f"test classes. Intervals of ranks: {RANK_INTERVAL}. Bold: best of the "
        "column; underlined: second. The CSV file has all numbers of trials, and the time."
    )
    notes = [
        f"The difference is tested seed by seed (paired t-test, Holm over the losses), at "
        f"{rule_words(most)}.",
        "A loss with more hyperparameters of its own spreads its trials over more options.",
        *filter(None, [of_heads(inputs.study)]),
    ]
    rows = _budget_rows(ranks, inputs.some("budget_gaps"), most)
    return filled("Losses at equal budgets", caption, columns, rows, notes)


def _budget_rows(
    ranks: pd.DataFrame, gaps: pd.DataFrame, most: int
) -> Iterator[tuple[str, Budgets]]:
    """Yield each loss with the heading of its condition, best after ``most`` trials first.

    A row of ``ranks`` gets its mark, and the test of ``gaps`` for its loss.
    """
    condition = ["dataset", "setting", "batch_size"]
    printed = ranks["mean"].map(as_printed).where(ranks["n"] > 0)
    compared = [ranks[name] for name in (*condition, "trials")]
    ranks = ranks.assign(mark=printed.groupby(compared).transform(marks))
    tests = rows_of(gaps, trials=most).drop(columns="trials")
    ranks = ranks.merge(tests, "left", [*condition, "loss"], suffixes=("", "_of_test"))
    for _, here in ranks.groupby(condition, sort=False):
        for last in records(rows_of(here, trials=most).sort_values("rank"), BudgetRow):
            results = {row.trials: row for row in records(rows_of(here, loss=last.loss), BudgetRow)}
            yield condition_label(last), results


@TABLES.register("budget_order", display="How sure the order is", of_trials=True)
def budget_order(inputs: StudyResults) -> Table:
    """Return one row per rule set and kind of chance."""
    columns = [
        words("Rule set", lambda row: rule_words(row.trials)),
        words("Drawn again", lambda row: DRAWN[row.source]),
        numbers("Kendall's tau", plain, kendall="kendall"),
        numbers("Pairs in another order (%)", percent, flipped="flipped"),
        numbers("Same best loss (%)", percent, best_kept="best_kept"),
    ]
    rows = ((condition_label(row), row) for row in records(inputs.some("budget_order"), OrderRow))
    caption = (
        "The order of the losses compared with the one that 2,000 draws with replacement give. "
        "Kendall's tau: 1 is the same order, 0 no relation. Only chosen settings were run on the "
        "test classes: trials drawn again move a test score by as much as the best score on the "
        "held-out classes."
    )
    return filled("How sure the order is", caption, columns, rows)


@TABLES.register("budget_options", display="Which options mattered", of_trials=True)
def budget_options(inputs: StudyResults) -> Table:
    """Return one row per loss and option, the most important option of each loss first."""
    shares = inputs.some("budget_options").sort_values("share", ascending=False, kind="stable")
    shares = shares.assign(named=~shares.duplicated(["dataset", "loss"]))
    rows = ((row.dataset, row) for row in ordered(shares, OptionRow, inputs, "dataset", "loss"))
    columns = [
        words("Loss", lambda row: inputs.label(row.loss) if row.named else ""),
        words("Option", lambda row: row.option.removeprefix("recipe.")),
        numbers("Share", lambda value: whole(100 * value), share="share"),
        numbers("rho", signed, rho="rho"),
        numbers("p", p_value, p="p"),
    ]
    caption = (
        "How much of the variance of the trials' ranks lies between low, middle and high values of "
        "an option, less what chance alone would put there (percent); Spearman's rho; p of Kruskal "
        "and Wallis, not corrected. A stand-in for functional ANOVA, which so few trials cannot "
        "carry: interactions are not seen."
    )
    return filled("Which options mattered", caption, columns, rows)
