"""The rows and columns that tables share: losses by condition, and paired tests."""

from collections.abc import Callable, Sequence
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
from benchmark.report.numbers import finite, interval, p_value, plain, points
from benchmark.report.render.table import (
    Column,
    Section,
    Table,
    TableCell,
    grouped,
    number_cell,
    text_column,
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
    columns: Sequence[Column],
    first_cells: Callable[[Any], list[TableCell]],
    words: tuple[str, str],
) -> Table:
    """Return the table of ``tests``, a section per metric and condition in the study's order.

    Each row is ``first_cells`` of the test (a named tuple), below ``columns``, and the test itself;
    ``words`` say of a significant difference that it is above or below zero.
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
    rows = (
        (_heading(row), [*first_cells(row), *test_cells(row, queries, *words)])
        for row in ordered.loc[keys.sort_values([*keys], kind="stable").index].itertuples()
    )
    return Table(
        title,
        f"{caption} {CAPTION}",
        [*columns, *test_columns(study, queries)],
        grouped(rows),
        [_families(tests, study)],
    )


def by_condition(
    table: pd.DataFrame, study: Study, cells: Callable[[Any], list[TableCell]]
) -> list[Section]:
    """Return a section per condition, and in it a row for each of ``table``, in the study's order.

    A row is the loss, then ``cells`` of the row (a named tuple). ``table`` has a row per loss, or
    per loss and metric.
    """
    losses = loss_order(table["loss"], study)
    order = table[[column for column in CONDITION if column in table]].assign(
        loss=table["loss"].map(losses.index)
    )
    if "metric" in table:
        metrics = metric_order(table["metric"].dropna(), study)
        known = {metric: number for number, metric in enumerate(metrics)}
        order["metric"] = table["metric"].map(lambda metric: known.get(metric, -1))
    ordered = table.loc[order.sort_values([*order], kind="stable").index]
    rows = (
        (_condition(row), [loss_cell(row.loss, study), *cells(row)]) for row in records(ordered)
    )
    return grouped(rows)


def loss_cell(label: str, study: Study) -> TableCell:
    """Return a cell with the display name of a loss."""
    return TableCell(loss_label(label, study))


def test_columns(study: Study, queries: bool = False) -> list[Column]:
    """Return the columns of a test; the CSV has differences in [0, 1].

    ``queries`` asks for the interval over classes of queries.
    """
    over_classes = Column((f"{confidence(study)} over classes",), parts=("low", "high"))
    return [
        Column(("Difference",), parts=("difference",)),
        Column((f"{confidence(study)} interval",), parts=("low", "high")),
        *[over_classes] * queries,
        text_column("Outcome"),
        *(Column((name,), parts=("",)) for name in ("p", "p (Holm)", "d_z", "Detectable", "n")),
    ]


def test_cells(
    row: Any, queries: bool = False, above: str = "higher", below: str = "lower"
) -> list[TableCell]:
    """Return the cells of one test, a row of ``paired.csv`` as a named tuple."""
    significant = is_true(row.significant)
    lost = getattr(row, "lost", "")
    if isinstance(lost, str) and lost:
        told = (below, "bad") if lost == row.loss else (above, "good")
        outcome = TableCell(f"{told[0]}: divergence", tone=told[1])
    elif finite(row.p_holm) is None:
        outcome = TableCell("no test", tone="muted")
    elif not significant:
        outcome = TableCell("not significant", tone="unsure")
    elif row.difference > 0:
        outcome = TableCell(above, tone="good")
    else:
        outcome = TableCell(below, tone="bad")
    return [
        number_cell(points, row.difference, mark="best" if significant else ""),
        number_cell(interval, row.ci_low, row.ci_high),
        *([number_cell(interval, row.query_low, row.query_high)] if queries else []),
        outcome,
        number_cell(p_value, row.p),
        number_cell(p_value, row.p_holm),
        number_cell(plain, row.d_z),
        number_cell(lambda value: points(value).lstrip("+"), row.detectable),
        number_cell(
            lambda n: plain(n, 0), row.n, note=row.note if isinstance(row.note, str) else ""
        ),
    ]


def is_true(value: Any) -> bool:
    """Return whether a cell of a file says true, as text or as a number."""
    return str(value) == "True"


def _heading(row: Any) -> str:
    return f"{metric_label(row.metric)} · {_condition(row)}"


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
