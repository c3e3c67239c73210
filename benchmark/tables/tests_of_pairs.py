"""The rows and columns that all tables of paired tests share."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.stats.paired import PLACE
from benchmark.tables.labels import confidence, group_label, loss_order, metric_label, metric_order
from benchmark.tables.numbers import interval, known, p_value, plain, points
from benchmark.tables.table import Cell, Column, NothingToShow, Section, text_column

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
        Column(("p",), parts=("",)),
        Column(("p (Holm)",), parts=("",)),
        Column(("Cohen's d_z",), parts=("",)),
        Column(("Detectable",), parts=("",)),
        Column(("n",), parts=("",)),
        text_column("Outcome"),
    ]


def test_cells(row: Any, better: str = "higher", worse: str = "lower") -> list[Cell]:
    """Returns the cells of one test (a row of paired.csv as a named tuple)."""
    numbers = {name: known(getattr(row, name)) for name in _PARTS}
    note = row.note if isinstance(row.note, str) else ""
    significant = row.significant is True or str(row.significant) == "True"
    if numbers["p_holm"] is None:
        outcome = Cell("no test", note=note, tone="muted")
    elif significant:
        up = numbers["difference"] > 0
        outcome = Cell(better if up else worse, note=note, tone="good" if up else "bad")
    else:
        outcome = Cell("not significant", note=note, tone="unsure")
    return [
        Cell(points(numbers["difference"]), "best" if significant else "", numbers=(numbers["difference"],)),
        Cell(interval(numbers["ci_low"], numbers["ci_high"]), numbers=(numbers["ci_low"], numbers["ci_high"])),
        Cell(p_value(numbers["p"]), numbers=(numbers["p"],)),
        Cell(p_value(numbers["p_holm"]), numbers=(numbers["p_holm"],)),
        Cell(plain(numbers["d_z"]), numbers=(numbers["d_z"],)),
        Cell(points(numbers["detectable"]).lstrip("+"), numbers=(numbers["detectable"],)),
        Cell(str(int(numbers["n"] or 0)), numbers=(numbers["n"],)),
        outcome,
    ]


def sections_of(found: pd.DataFrame, study: Any, rows_of: Any) -> list[Section]:
    """Returns one section per dataset, setting, batch size, split and metric, in the study's order."""
    order = {metric: index for index, metric in enumerate(metric_order(found["metric"].unique(), study))}
    losses = {loss: index for index, loss in enumerate(loss_order({*found["loss"], *found["against"]}, study))}
    found = found[found["metric"].isin(order)]
    found = found.assign(
        _metric=found["metric"].map(order),
        _loss=found["loss"].map(losses),
        _against=found["against"].map(losses),
    )
    keys = ["dataset", "setting", "split", "_metric", "batch_size"]
    sections = []
    for _, part in found.groupby(keys, sort=True):
        place = dict(zip(PLACE, part[PLACE].iloc[0], strict=True))
        title = group_label(place["dataset"], place["setting"], place["batch_size"], place["split"])
        part = part.sort_values(["_loss", "_against"], kind="stable")
        sections.append(Section(f"{metric_label(place['metric'])} · {title}", rows_of(part)))
    return sections


def family_note(found: pd.DataFrame, study: Any) -> str:
    """Returns how the tests were corrected: the families with their sizes."""
    sizes = found.drop_duplicates("family")[["family", "family_size"]]
    listed = "; ".join(f"{row.family} ({int(row.family_size or 0)} tests)" for row in sizes.itertuples())
    return f"Holm families at level {study.comparison.alpha:g}: {listed}."


SHARED_CAPTION = (
    "Two-sided paired t-test over common seeds, test score at the last epoch. Differences, intervals and detectable "
    "differences are in percentage points; bold differences are significant after Holm's correction. Detectable: "
    "the smallest true difference that this many seeds would have shown with probability 0.8."
)
