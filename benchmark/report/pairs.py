"""The rows and columns that tables share: losses by condition, and paired tests."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from benchmark.report.inputs import CONDITION, Inputs, records
from benchmark.report.labels import (
    condition_label,
    confidence,
    loss_label,
    loss_order,
    metric_label,
    metric_order,
)
from benchmark.report.numbers import finite, interval, p_value, plain, points, whole
from benchmark.report.table import (
    Column,
    Field,
    Table,
    TableCell,
    filled,
    number_cell,
    numbers,
    words,
)
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


def pair_table(
    inputs: Inputs,
    tests: pd.DataFrame,
    title: str,
    caption: str,
    fields: Sequence[Field],
    outcomes: tuple[str, str],
) -> Table:
    """Return the table of ``tests``, a section per metric and condition in the study's order.

    Each row has the ``fields`` and then those of the test itself; ``outcomes`` say of a significant
    difference that it is above or below zero.
    """
    study = inputs.study
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
    queries = bool(tests["query_low"].notna().any())
    rows = records(ordered.loc[keys.sort_values([*keys], kind="stable").index])
    return filled(
        title,
        f"{caption} {CAPTION}",
        [*fields, *test_fields(study, queries, *outcomes)],
        ((f"{metric_label(row.metric)} · {_condition(row)}", row) for row in rows),
        [_families(tests, study)],
    )


def by_condition(table: pd.DataFrame, study: Study) -> Iterator[tuple[str, Any]]:
    """Yield the condition and the row (a named tuple) for each of ``table``, in the study's order.

    ``table`` has a row per loss, or per loss and metric.
    """
    losses = loss_order(table["loss"], study)
    order = table[[column for column in CONDITION if column in table]].assign(
        loss=table["loss"].map(losses.index)
    )
    if "metric" in table:
        metrics = metric_order(table["metric"].dropna(), study)
        known = {metric: number for number, metric in enumerate(metrics)}
        order["metric"] = table["metric"].map(lambda metric: known.get(metric, -1))
    for row in records(table.loc[order.sort_values([*order], kind="stable").index]):
        yield _condition(row), row


def loss_cell(label: str, study: Study) -> TableCell:
    """Return a cell with the display name of a loss."""
    return TableCell(loss_label(label, study))


def loss_field(study: Study) -> Field:
    """Return the column of a table's losses."""
    return words("Loss", lambda row: loss_cell(row.loss, study))


def test_fields(
    study: Study, queries: bool = False, above: str = "higher", below: str = "lower"
) -> list[Field]:
    """Return the columns of a test, a row of ``paired.csv``; the CSV has differences in [0, 1].

    ``queries`` asks for the interval over classes of queries.
    """
    sure = confidence(study)
    over_classes = numbers(f"{sure} over classes", interval, low="query_low", high="query_high")
    return [
        Field(Column(("Difference",), parts=("difference",)), _difference),
        numbers(f"{sure} interval", interval, low="ci_low", high="ci_high"),
        *[over_classes] * queries,
        words("Outcome", lambda row: _outcome(row, above, below)),
        numbers("p", p_value, "p"),
        numbers("p (Holm)", p_value, "p_holm"),
        numbers("d_z", plain, "d_z"),
        numbers("Detectable", lambda value: points(value).lstrip("+"), "detectable"),
        Field(Column(("n",), parts=("",)), _pairs),
    ]


def _difference(row: Any) -> TableCell:
    return number_cell(points, row.difference, mark="best" if is_true(row.significant) else "")


def _outcome(row: Any, above: str, below: str) -> TableCell:
    lost = getattr(row, "lost", "")
    if isinstance(lost, str) and lost:
        word, tone = (below, "bad") if lost == row.loss else (above, "good")
        return TableCell(f"{word}: divergence", tone=tone)
    if finite(row.p_holm) is None:
        return TableCell("no test", tone="muted")
    if not is_true(row.significant):
        return TableCell("not significant", tone="unsure")
    if row.difference > 0:
        return TableCell(above, tone="good")
    return TableCell(below, tone="bad")


def _pairs(row: Any) -> TableCell:
    return number_cell(whole, row.n, note=row.note if isinstance(row.note, str) else "")


def is_true(value: Any) -> bool:
    """Return whether a cell of a file says true, as text or as a number."""
    return str(value) == "True"


def _condition(row: Any) -> str:
    split = getattr(row, "split", "test")
    return condition_label(row.dataset, row.setting, split, row.batch_size)


def _families(tests: pd.DataFrame, study: Study) -> str:
    """Return how the tests were corrected: the families with their sizes."""
    sizes = tests.drop_duplicates("family")[["family", "family_size"]]
    told = "; ".join(
        f"{row.family} ({int(finite(row.family_size) or 0)} tests)" for row in sizes.itertuples()
    )
    return f"Holm families at level {study.comparison.alpha:g}: {told}."
