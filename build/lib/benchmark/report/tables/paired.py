"""Tests between losses: against the baseline, all pairs, the ablation, and ranks over datasets."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from benchmark.report.inputs import Inputs, records
from benchmark.report.labels import (
    condition_label,
    confidence,
    finite,
    interval,
    is_true,
    loss_label,
    loss_order,
    metric_label,
    metric_order,
    p_value,
    percent,
    plain,
    points,
    whole,
)
from benchmark.report.table import Column, Table, TableCell, filled, number_cell, numbers, words
from benchmark.report.tables import TABLES
from benchmark.study import Study

CAPTION = (
    "Two-sided paired t-test over common seeds, test score at the last epoch. Differences, "
    "intervals and detectable differences are in percentage points; bold differences are "
    "significant after Holm's correction. d_z: effect size of the paired differences, unbiased. "
    "Detectable: the smallest true difference that this many seeds would have shown with "
    "probability 0.8. The interval over classes, where there is one, says how much the difference "
    "depends on the classes that were tested. A loss that diverges where the other does not has "
    "lost, whatever its other runs score."
)
RANKS = "Average ranks over datasets"


@TABLES.register("paired", display="Paired tests against the baseline")
def paired(inputs: Inputs) -> Table:
    """Return the tests of each loss against the study's baseline; positive means better."""
    tests, study = inputs.tests("baseline"), inputs.study
    baseline = loss_label(tests["against"].iloc[0], study)
    title, caption = f"Paired tests against {baseline}", f"Each loss minus {baseline}."
    columns = [words("Loss", lambda row: loss_label(row.loss, study))]
    return _pair_table(study, tests, title, caption, columns)


@TABLES.register("all_pairs", display="Paired tests of all pairs")
def all_pairs(inputs: Inputs) -> Table:
    """Return the tests of all pairs of losses; positive means that the first is better."""
    tests, study = inputs.tests("pairs"), inputs.study
    columns = [
        words("First", lambda row: loss_label(row.loss, study)),
        words("Second", lambda row: loss_label(row.against, study)),
    ]
    outcomes = ("first higher", "second higher")
    title = "Paired tests of all pairs"
    return _pair_table(study, tests, title, "First loss minus second.", columns, outcomes)


@TABLES.register("ablation", display="Ablation")
def ablation(inputs: Inputs) -> Table:
    """Return per batch size the steps of the study's ablation and their total, with their tests."""
    tests, study = inputs.tests("ablation"), inputs.study

    def step(row: Any) -> str:
        named = f"{loss_label(row.against, study)} → {loss_label(row.loss, study)}"
        return f"{named} (total)" if row.step == "total" else named

    columns = [
        words("Step", step),
        numbers("From", percent, mean="mean_against"),
        numbers("To", percent, mean="mean"),
    ]
    steps = " → ".join(loss_label(label, study) for label in study.comparison.ablation)
    caption = f"Steps {steps}. Means are in percent over the common seeds."
    return _pair_table(study, tests, "Ablation", caption, columns, ("gain", "loss"))


def _pair_table(
    study: Study,
    tests: pd.DataFrame,
    title: str,
    caption: str,
    columns: Sequence[Column],
    outcomes: tuple[str, str] = ("higher", "lower"),
) -> Table:
    """Return the table of ``tests``, a section per metric and condition; ``columns`` come first."""
    metrics = metric_order(tests["metric"].unique(), study)
    losses = loss_order({*tests["loss"], *tests["against"]}, study)
    ordered = tests[tests["metric"].isin(metrics)]
    keys = ordered[["dataset", "setting", "split", "metric", "batch_size"]].assign(
        metric=ordered["metric"].map(metrics.index),
        # An ablation keeps the order of its steps; "total" comes after all numbers.
        step=ordered.get("step", pd.Series("", index=ordered.index)).astype(str),
        loss=ordered["loss"].map(losses.index),
        against=ordered["against"].map(losses.index),
    )
    rows = records(ordered.loc[keys.sort_values([*keys], kind="stable").index])
    sizes = tests.drop_duplicates("family")[["family", "family_size"]]
    families = "; ".join(
        f"{row.family} ({int(finite(row.family_size) or 0)} tests)" for row in sizes.itertuples()
    )
    return filled(
        title,
        f"{caption} {CAPTION}",
        [*columns, *test_columns(study, bool(tests["query_low"].notna().any()), outcomes)],
        ((f"{metric_label(row.metric)} · {condition_label(row)}", row) for row in rows),
        [f"Holm families at level {study.comparison.alpha:g}: {families}."],
    )


def test_columns(
    study: Study, queries: bool = False, outcomes: tuple[str, str] = ("higher", "lower")
) -> list[Column]:
    """Return the columns of a test, a row of ``paired.csv``; the CSV has differences in [0, 1].

    ``outcomes`` say of a significant difference that it is above or below zero.
    """

    def difference(row: Any) -> TableCell:
        return number_cell(points, row.difference, mark="best" if is_true(row.significant) else "")

    def outcome(row: Any) -> TableCell:
        (above, below), lost = outcomes, getattr(row, "lost", "")
        if isinstance(lost, str) and lost:
            word, tone = (below, "bad") if lost == row.loss else (above, "good")
            return TableCell(f"{word}: divergence", tone=tone)
        if finite(row.p_holm) is None:
            return TableCell("no test", tone="muted")
        if not is_true(row.significant):
            return TableCell("not significant", tone="unsure")
        word, tone = (above, "good") if row.difference > 0 else (below, "bad")
        return TableCell(word, tone=tone)

    def pairs(row: Any) -> TableCell:
        return number_cell(whole, row.n, note=row.note if isinstance(row.note, str) else "")

    sure = confidence(study)
    over_classes = numbers(f"{sure} over classes", interval, low="query_low", high="query_high")
    return [
        Column(("Difference",), parts=("difference",), cell=difference),
        numbers(f"{sure} interval", interval, low="ci_low", high="ci_high"),
        *[over_classes] * queries,
        words("Outcome", outcome),
        numbers("p", p_value, "p"),
        numbers("p (Holm)", p_value, "p_holm"),
        numbers("d_z", plain, "d_z"),
        numbers("Detectable", lambda value: points(value).lstrip("+"), "detectable"),
        Column(("n",), parts=("",), cell=pairs),
    ]


@TABLES.register("ranks", display=RANKS)
def ranks(inputs: Inputs) -> Table:
    """Return per setting, batch size and metric the losses from the best average rank on."""
    table, study = inputs.some("ranks"), inputs.study
    tests = {
        (row.setting, row.batch_size, row.metric, row.loss, row.against): row
        for row in records(inputs.rank_tests)
    }
    metrics = metric_order(table["metric"], study)
    order = table[["setting", "batch_size", "metric"]].assign(
        metric=table["metric"].map(metrics.index), rank=table["rank"]
    )
    rows = []
    best: dict[tuple[str, int, str], str] = {}
    for row in records(table.loc[order.sort_values([*order], kind="stable").index]):
        place = (row.setting, row.batch_size, row.metric)
        first = best.setdefault(place, row.loss)
        heading = (
            f"{metric_label(row.metric)} · {row.setting} · batch size {row.batch_size} · "
            f"{row.datasets} datasets · Friedman p = {p_value(row.p_friedman)} · critical "
            f"difference {plain(row.critical)}"
        )
        rows.append((heading, (row, tests.get((*place, first, row.loss)))))

    def behind(form: Any, name: str) -> Any:
        return lambda pair: number_cell(form, getattr(pair[1], name)) if pair[1] else TableCell("")

    def outcome(pair: Any) -> TableCell:
        if pair[1] is None:
            return TableCell("best")
        sure = is_true(pair[1].significant)
        word, tone = ("behind", "bad") if sure else ("not told apart", "unsure")
        return TableCell(word, tone=tone)

    columns = [
        words("Loss", lambda pair: loss_label(pair[0].loss, study)),
        Column(("Average rank",), ("rank",), cell=lambda pair: number_cell(plain, pair[0].rank)),
        Column(("Behind the best by",), ("difference",), cell=behind(plain, "difference")),
        Column(("p (Holm)",), ("",), cell=behind(p_value, "p_holm")),
        words("Outcome", outcome),
    ]
    caption = (
        "Rank of each loss by its mean over seeds at the last epoch, 1 for the best, averaged over "
        "datasets; a dataset counts once, by the mean over its splits, and a loss that diverges "
        "ranks last. Friedman's test is whether any ranks differ (by permutation); the pairs are "
        "tested by Demšar's z test with Holm's correction over all pairs."
    )
    return filled(RANKS, caption, columns, rows)
