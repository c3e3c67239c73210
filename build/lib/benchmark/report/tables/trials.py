"""Losses at equal budgets: scores and ranks, how sure the order is, and which options mattered."""

from dataclasses import replace
from typing import Any

from benchmark.report.inputs import DIVERGENCE_CELL, Inputs, records
from benchmark.report.labels import (
    condition_label,
    confidence,
    count,
    duration,
    interval,
    loss_label,
    loss_order,
    metric_label,
    p_value,
    percent,
    plain,
    points,
    signed,
    whole,
)
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
from benchmark.study.trials import AUTHORS

TITLE = "Losses at equal budgets"
WHERE = [*DIVERGENCE_CELL[:3]]
ORDER_TITLE = "How sure the order is"
DRAWN = {"seeds": "seeds", "trials": "trials and folds", "both": "all of them"}
OPTIONS_TITLE = "Which options mattered"


def rule_words(trials: int) -> str:
    """Return "Authors", "1 trial" or "16 trials"."""
    return count(trials, "trial") if trials else AUTHORS.capitalize()


@TABLES.register("budgets", display=TITLE, of_trials=True)
def budgets(inputs: Inputs) -> Table:
    """Return one row per loss: the score under each rule set, best after all trials first."""
    ranks, gaps = inputs.some("budget_ranks"), inputs.some("budget_gaps")
    budgets = sorted(ranks["trials"].unique())
    most, metric = budgets[-1], metric_label(inputs.headline)
    gap, rows = f"{rule_words(most)} − authors", []
    for place in records(ranks[WHERE].drop_duplicates()):
        where = [place.dataset, place.setting, place.batch_size]
        part = ranks[(ranks[WHERE] == where).all(axis=1)]
        tests = gaps[(gaps[WHERE] == where).all(axis=1) & (gaps["trials"] == most)]
        tested = {test.loss: test for test in records(tests)}
        order = part[part["trials"] == most].sort_values("rank")["loss"]
        found = {(row.loss, row.trials): row for row in records(part)}
        marked: dict[tuple[str, int], str] = {}
        for budget in budgets:
            scores = [found[loss, budget] for loss in order]
            values = [round(row.mean, 4) if row.n else None for row in scores]
            marked |= zip(((loss, budget) for loss in order), marks(values), strict=True)
        for loss in order:
            by_budget = {each: (found[loss, each], marked[loss, each]) for each in budgets}
            rows.append((condition_label(place), (loss, by_budget, tested.get(loss))))

    def score(budget: int) -> Column:
        def cell(row: Any) -> TableCell:
            each, mark = row[1][budget]
            if not each.n:
                return TableCell("diverged", tone="bad")
            text = f"{percent(each.mean)} {interval(each.ci_low, each.ci_high, percent)}"
            return TableCell(text, mark, numbers=(each.mean, each.ci_low, each.ci_high))

        return Column((metric, rule_words(budget)), ("mean", "low", "high"), cell=cell)

    def rank(budget: int) -> Column:
        def cell(row: Any) -> TableCell:
            each = row[1][budget][0]
            text = f"{each.rank:.0f} [{each.rank_low:.0f}, {each.rank_high:.0f}]"
            return TableCell(text, numbers=(each.rank, each.rank_low, each.rank_high))

        return Column(("Rank [interval]", rule_words(budget)), ("rank", "low", "high"), cell=cell)

    def difference(row: Any) -> TableCell:
        test = row[2]
        if test is None:
            return TableCell(plain(None), tone="muted")
        mean, bounds = test.difference, (test.ci_low, test.ci_high)
        tone = ("good" if mean > 0 else "bad") if test.significant else ""
        return TableCell(f"{points(mean)} {interval(*bounds)}", numbers=(mean, *bounds), tone=tone)

    def p_holm(row: Any) -> TableCell:
        if row[2] is None:
            return TableCell(plain(None), tone="muted")
        return number_cell(p_value, row[2].p_holm)

    def seconds(row: Any) -> TableCell:
        return number_cell(duration, row[1][most][0].seconds)

    columns = [
        replace(words("", lambda row: loss_label(row[0], inputs.study)), header=("", "Loss")),
        *map(score, budgets),
        rank(most),
        rank(budgets[0]),
        Column((gap, "Points"), ("difference", "low", "high"), cell=difference),
        Column((gap, "p (Holm)"), ("p",), cell=p_holm),
        Column(("Time", f"of {rule_words(most)}"), ("seconds",), cell=seconds),
    ]
    caption = (
        f"Test {metric} in percent with its {confidence(inputs.study)} t interval over "
        f"{int(ranks['n'].max())} fresh seeds. “Authors”: as published. “k trials”: the "
        "best of the first k trials, chosen on training classes that were held out, never on the "
        "test classes. Rank intervals come from drawing trials and seeds again. Bold: best of the "
        "column; underlined: second."
    )
    notes = [
        f"The difference is tested seed by seed (paired t-test, Holm over the losses), at "
        f"{rule_words(most)}.",
        "A loss with more hyperparameters of its own spreads its trials over more options.",
    ]
    return filled(TITLE, caption, columns, rows, notes)


@TABLES.register("budget_order", display=ORDER_TITLE, of_trials=True)
def budget_order(inputs: Inputs) -> Table:
    """Return one row per rule set and kind of chance."""
    columns = [
        words("Rule set", lambda row: rule_words(row.trials)),
        words("Drawn again", lambda row: DRAWN[row.source]),
        numbers("Kendall's tau", plain, kendall="kendall"),
        numbers("Pairs in another order (%)", percent, flipped="flipped"),
        numbers("Same best loss (%)", percent, best_kept="best_kept"),
    ]
    rows = ((condition_label(row), row) for row in records(inputs.some("budget_order")))
    caption = (
        "The order of the losses compared with the one that 2,000 draws with replacement give. "
        "Kendall's tau: 1 is the same order, 0 no relation. Only chosen settings were run on the "
        "test classes: trials drawn again move a test score by as much as the best score on the "
        "held-out classes."
    )
    return filled(ORDER_TITLE, caption, columns, rows)


@TABLES.register("budget_options", display=OPTIONS_TITLE, of_trials=True)
def budget_options(inputs: Inputs) -> Table:
    """Return one row per loss and option, the most important option of each loss first."""
    options, study = inputs.some("budget_options"), inputs.study
    rows: list[tuple[str, Any]] = []
    for dataset, part in options.groupby("dataset", sort=False):
        for loss in loss_order(part["loss"], study):
            here = part[part["loss"] == loss].sort_values("share", ascending=False, kind="stable")
            named = [loss_label(loss, study), *[""] * (len(here) - 1)]
            rows += ((str(dataset), row) for row in records(here.assign(named=named)))
    columns = [
        words("Loss", lambda row: row.named),
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
    return filled(OPTIONS_TITLE, caption, columns, rows)
