"""Losses at equal budgets: scores and ranks, how sure the order is, and which options mattered."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from benchmark.report.inputs import Inputs, records
from benchmark.report.labels import (
    condition_label,
    confidence,
    loss_label,
    loss_order,
    metric_label,
)
from benchmark.report.numbers import (
    duration,
    interval,
    p_value,
    percent,
    plain,
    points,
    signed,
    whole,
)
from benchmark.report.table import (
    Column,
    Section,
    Table,
    TableCell,
    filled,
    marks,
    number_cell,
    numbers,
    text_column,
    words,
)
from benchmark.report.tables import TABLES
from benchmark.study import Study
from benchmark.study.trials import AUTHORS

TITLE = "Losses at equal budgets"
WHERE = ["dataset", "setting", "batch_size"]


@TABLES.register("budgets", display=TITLE, of_trials=True)
def budgets(inputs: Inputs) -> Table:
    """Return one row per loss: the score under each rule set, best after all trials first."""
    ranks, gaps = inputs.budget("budget_ranks"), inputs.budget("budget_gaps")
    budgets = sorted(ranks["trials"].unique())
    most = budgets[-1]
    sections = []
    for place in records(ranks[WHERE].drop_duplicates()):
        where = [place.dataset, place.setting, place.batch_size]
        part = ranks[(ranks[WHERE] == where).all(axis=1)]
        tests = gaps[(gaps[WHERE] == where).all(axis=1) & (gaps["trials"] == most)]
        rows = _rows(part, tests.set_index("loss"), budgets, inputs)
        sections.append(Section(_place(place), rows))
    metric = metric_label(inputs.headline)
    scores = [
        Column((metric, rule_words(budget)), parts=("mean", "low", "high")) for budget in budgets
    ]
    columns = [
        text_column("", "Loss"),
        *scores,
        Column(("Rank [interval]", rule_words(most)), parts=("rank", "low", "high")),
        Column(("Rank [interval]", rule_words(0)), parts=("rank", "low", "high")),
        Column((f"{rule_words(most)} − authors", "Points"), parts=("difference", "low", "high")),
        Column((f"{rule_words(most)} − authors", "p (Holm)"), parts=("p",)),
        Column(("Time", f"of {rule_words(most)}"), parts=("seconds",)),
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
    return Table(TITLE, caption, columns, sections, notes)


def _place(row: Any) -> str:
    return condition_label(row.dataset, row.setting, "test", row.batch_size)


def rule_words(trials: int) -> str:
    """Return "Authors", "1 trial" or "16 trials"."""
    if not trials:
        return AUTHORS.capitalize()
    return f"{trials} trial{'s' if trials > 1 else ''}"


def _rows(
    part: pd.DataFrame, tests: pd.DataFrame, budgets: list[int], inputs: Inputs
) -> list[list[TableCell]]:
    by_rule = {budget: part[part["trials"] == budget].set_index("loss") for budget in budgets}
    order = by_rule[budgets[-1]].sort_values("rank").index
    columns = []
    for table in by_rule.values():
        rows = list(records(table.loc[order]))
        marked = marks([round(row.mean, 4) if row.n else None for row in rows])
        columns.append([_score(row, mark) for row, mark in zip(rows, marked, strict=True)])
    cells = []
    for number, loss in enumerate(order):
        last, first = by_rule[budgets[-1]].loc[loss], by_rule[budgets[0]].loc[loss]
        test = tests.loc[loss] if loss in tests.index else None
        cells.append(
            [
                TableCell(loss_label(loss, inputs.study)),
                *(column[number] for column in columns),
                _rank(last),
                _rank(first),
                *_gap(test),
                number_cell(duration, last["seconds"]),
            ]
        )
    return cells


def _score(row: Any, mark: str) -> TableCell:
    numbers = (row.mean, row.ci_low, row.ci_high)
    text = f"{percent(row.mean)} {interval(row.ci_low, row.ci_high, percent)}"
    return TableCell(text, mark, numbers=numbers) if row.n else TableCell("diverged", tone="bad")


def _rank(row: pd.Series) -> TableCell:
    text = f"{row['rank']:.0f} [{row['rank_low']:.0f}, {row['rank_high']:.0f}]"
    return TableCell(text, numbers=(row["rank"], row["rank_low"], row["rank_high"]))


def _gap(test: pd.Series | None) -> list[TableCell]:
    if test is None:
        return [TableCell(plain(None), tone="muted")] * 2
    mean, bounds = test["difference"], (test["ci_low"], test["ci_high"])
    tone = ("good" if mean > 0 else "bad") if test["significant"] else ""
    text = f"{points(mean)} {interval(*bounds)}"
    cell = TableCell(text, numbers=(mean, *bounds), tone=tone)
    return [cell, number_cell(p_value, test["p_holm"])]


ORDER_TITLE = "How sure the order is"
DRAWN = {"seeds": "seeds", "trials": "trials and folds", "both": "all of them"}


@TABLES.register("budget_order", display=ORDER_TITLE, of_trials=True)
def budget_order(inputs: Inputs) -> Table:
    """Return one row per rule set and kind of chance."""
    fields = [
        words("Rule set", lambda row: TableCell(rule_words(row.trials))),
        words("Drawn again", lambda row: TableCell(DRAWN[row.source])),
        numbers("Kendall's tau", plain, kendall="kendall"),
        numbers("Pairs in another order (%)", percent, flipped="flipped"),
        numbers("Same best loss (%)", percent, best_kept="best_kept"),
    ]
    rows = ((_place(row), row) for row in records(inputs.budget("budget_order")))
    caption = (
        "The order of the losses compared with the one that 2,000 draws with replacement give. "
        "Kendall's tau: 1 is the same order, 0 no relation. Only chosen settings were run on the "
        "test classes: trials drawn again move a test score by as much as the best score on the "
        "held-out classes."
    )
    return filled(ORDER_TITLE, caption, fields, rows)


OPTIONS_TITLE = "Which options mattered"


@TABLES.register("budget_options", display=OPTIONS_TITLE, of_trials=True)
def budget_options(inputs: Inputs) -> Table:
    """Return one row per loss and option, the most important option of each loss first."""
    rows = _by_importance(inputs.budget("budget_options"), inputs.study)
    fields = [
        words("Loss", lambda row: TableCell(row.named)),
        words("Option", lambda row: TableCell(row.option.removeprefix("recipe."))),
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
    return filled(OPTIONS_TITLE, caption, fields, rows)


def _by_importance(options: pd.DataFrame, study: Study) -> Iterator[tuple[str, Any]]:
    """Yield (dataset, row); the first row of a loss has its name."""
    for dataset, part in options.groupby("dataset", sort=False):
        for loss in loss_order(part["loss"], study):
            here = part[part["loss"] == loss].sort_values("share", ascending=False, kind="stable")
            named = [loss_label(loss, study), *[""] * (len(here) - 1)]
            for row in records(here.assign(named=named)):
                yield str(dataset), row
