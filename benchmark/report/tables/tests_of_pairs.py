"""The rows and columns that all tables of paired tests share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from benchmark.report.tables.labels import (
    confidence,
    group_label,
    loss_order,
    metric_label,
    metric_order,
)
from benchmark.report.tables.numbers import interval, known, p_value, plain, points
from benchmark.report.tables.table import Cell, Column, NothingToShow, Section, text_column

_PARTS = ["difference", "ci_low", "ci_high", "p", "p_holm", "d_z", "detectable", "n"]


def tests_of(stats: dict[str, pd.DataFrame], name: str, kind: str) -> pd.DataFrame:
    """Returns the tests of one kind; raises NothingToShow when there are none."""
    table = stats.get(name, pd.DataFrame())
    found = table[table["kind"] == kind] if "kind" in table else table
    if found.empty:
        raise NothingToShow(
            f"no paired test yet: it needs two losses that finished with a common seed (stats/{name}.csv)"
        )
    return found


def test_columns(study: Any) -> list[Column]:
    """Returns the columns of a test; differences in percentage points in text, in [0, 1] in the CSV."""
    return [
        Column(("Difference",), parts=("difference",)),
        Column((f"{confidence(study)} interval",), parts=("low", "high")),
        text_column("Outcome"),
        Column(("p",), parts=("",)),
        Column(("p (Holm)",), parts=("",)),
        Column(("d_z",), parts=("",)),
        Column(("Detectable",), parts=("",)),
        Column(("n",), parts=("",)),
    ]


def test_cells(row: Any, better: str = "higher", worse: str = "lower") -> list[Cell]:
    """Returns the cells of one test (a row of paired.csv as a named tuple)."""
    numbers = {name: known(getattr(row, name)) for name in _PARTS}
    note = row.note if isinstance(row.note, str) else ""
    significant = row.significant is True or str(row.significant) == "True"
    if numbers["p_holm"] is None:
        outcome = Cell("no test", tone="muted")
    elif significant:
        up = numbers["difference"] > 0
        outcome = Cell(better if up else worse, tone="good" if up else "bad")
    else:
        outcome = Cell("not significant", tone="unsure")
    return [
        Cell(
            points(numbers["difference"]),
            "best" if significant else "",
            numbers=(numbers["difference"],),
        ),
        Cell(
            interval(numbers["ci_low"], numbers["ci_high"]),
            numbers=(numbers["ci_low"], numbers["ci_high"]),
        ),
        outcome,
        Cell(p_value(numbers["p"]), numbers=(numbers["p"],)),
        Cell(p_value(numbers["p_holm"]), numbers=(numbers["p_holm"],)),
        Cell(plain(numbers["d_z"]), numbers=(numbers["d_z"],)),
        Cell(points(numbers["detectable"]).lstrip("+"), numbers=(numbers["detectable"],)),
        Cell(str(int(numbers["n"] or 0)), note=note, numbers=(numbers["n"],)),
    ]


def sections_of(
    found: pd.DataFrame, study: Any, row_of: Callable[[Any], list[Cell]]
) -> list[Section]:
    """Returns one section per dataset, setting, batch size, split and metric, in the study's order.

    ``row_of`` turns one test (a named tuple) into cells; an ablation keeps the order of its steps.
    """
    order = {
        metric: index for index, metric in enumerate(metric_order(found["metric"].unique(), study))
    }
    losses = {
        loss: index
        for index, loss in enumerate(loss_order({*found["loss"], *found["against"]}, study))
    }
    found = found[found["metric"].isin(order)]
    steps = found["step"].astype(str).replace("total", "~") if "step" in found else ""
    found = found.assign(
        of_metric=found["metric"].map(order),
        of_step=steps,
        of_loss=found["loss"].map(losses),
        of_against=found["against"].map(losses),
    )
    keys = [
        "dataset",
        "setting",
        "split",
        "of_metric",
        "batch_size",
        "of_step",
        "of_loss",
        "of_against",
    ]
    sections: dict[str, list[list[Cell]]] = {}
    for row in found.sort_values(keys, kind="stable").itertuples():
        title = group_label(row.dataset, row.setting, row.batch_size, row.split)
        sections.setdefault(f"{metric_label(row.metric)} · {title}", []).append(row_of(row))
    return [Section(title, rows) for title, rows in sections.items()]


def family_note(found: pd.DataFrame, study: Any) -> str:
    """Returns how the tests were corrected: the families with their sizes."""
    sizes = found.drop_duplicates("family")[["family", "family_size"]]
    listed = "; ".join(
        f"{row.family} ({int(row.family_size or 0)} tests)" for row in sizes.itertuples()
    )
    return f"Holm families at level {study.comparison.alpha:g}: {listed}."


SHARED_CAPTION = (
    "Two-sided paired t-test over common seeds, test score at the last epoch. Differences, intervals and detectable "
    "differences are in percentage points; bold differences are significant after Holm's correction. d_z: "
    "Cohen's effect size of the paired differences. Detectable: "
    "the smallest true difference that this many seeds would have shown with probability 0.8."
)
