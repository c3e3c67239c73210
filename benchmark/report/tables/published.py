"""Reference numbers beside ours, each with its verdict: published tables first, then frozen runs."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.report.tables import TABLES
from benchmark.report.tables.labels import loss_label, metric_label
from benchmark.report.tables.numbers import DASH, known, p_value
from benchmark.report.tables.table import Cell, Column, NothingToShow, Section, Table, text_column

VERDICT_TONES = {
    "reproduced": "good",
    "drifted": "bad",
    "inconclusive": "unsure",
    "not_run": "muted",
}


@TABLES.register("published", display="Published and frozen numbers beside ours")
def build(runs: pd.DataFrame, stats: dict[str, pd.DataFrame], study: Any) -> Table:
    """Returns one row per reference number, not_run ones included; tables with something measured come first."""
    verdicts = stats.get("verdicts", pd.DataFrame())
    if verdicts.empty:
        raise NothingToShow(
            "there are no verdicts: the study names no references, or none have been judged yet"
        )
    columns = [
        text_column("Row as printed"),
        text_column("Verdict"),
        text_column("Loss"),
        text_column("Dataset"),
        Column(("Batch size",)),
        text_column("Metric"),
        Column(("Reference",), parts=("mean", "sd", "n")),
        Column(("Ours",), parts=("mean", "sd", "n")),
        Column(("Difference",), parts=("points",)),
        Column(("90% interval",), parts=("low", "high")),
        Column(("Margin",), parts=("points",)),
        Column(("p of drift (Holm)",), parts=("value",)),
        text_column("Reason"),
    ]
    measured = verdicts.assign(_run=verdicts["verdict"] == "not_run")
    order = (
        measured.groupby(["source", "table"], sort=False)["_run"]
        .mean()
        .sort_values(kind="stable")
        .index
    )
    sections = []
    for source, table in order:
        part = verdicts[(verdicts["source"] == source) & (verdicts["table"] == table)]
        title = "Frozen runs of this study" if source == "frozen" else f"{source} · {table}"
        sections.append(Section(title, [_row(row, study) for row in part.to_dict("records")]))
    caption = (
        "Percentage points throughout; difference is ours minus the reference. Rows marked “quoted” repeat another "
        "paper's number. The 90% interval counts the uncertainty of both sides; the verdict compares it with the "
        "margin."
    )
    return Table("Published and frozen numbers beside ours", caption, columns, sections)


def _row(row: dict[str, Any], study: Any) -> list[Cell]:
    verdict = str(row["verdict"])
    direction = (
        f" {row['direction']}" if isinstance(row.get("direction"), str) and row["direction"] else ""
    )
    difference, low, high = (known(row[name]) for name in ("difference", "ci90_low", "ci90_high"))
    batch_size, margin, p = (known(row[name]) for name in ("batch_size", "margin", "p_holm"))
    quoted = "quoted" if str(row["provenance"]) in ("copied", "quoted") else ""
    loss = _word(row["loss"])
    return [
        Cell(_word(row["row_label"]), note=quoted),
        Cell(f"{verdict.replace('_', ' ')}{direction}", tone=VERDICT_TONES.get(verdict, "")),
        Cell(loss_label(loss, study)),
        Cell(_word(row["dataset"])),
        Cell(DASH if batch_size is None else f"{batch_size:.0f}", numbers=(batch_size,)),
        Cell(metric_label(_word(row["metric"]))),
        _side(row, "reference"),
        _side(row, "ours"),
        Cell(_signed(difference), numbers=(difference,)),
        Cell(
            DASH if low is None or high is None else f"[{_signed(low)}, {_signed(high)}]",
            numbers=(low, high),
        ),
        Cell(DASH if margin is None else f"±{margin:g}", numbers=(margin,)),
        Cell(p_value(p), numbers=(p,)),
        Cell(_word(row["reason"])),
    ]


def _side(row: dict[str, Any], side: str) -> Cell:
    mean, sd, n = (known(row[f"{side}_{name}"]) for name in ("mean", "sd", "n"))
    if mean is None:
        return Cell(DASH, numbers=(mean, sd, n))
    text = f"{mean:.2f}" + ("" if sd is None else f" ± {sd:.2f}")
    return Cell(text, note="" if n is None else f"n={n:.0f}", numbers=(mean, sd, n))


def _signed(value: float | None) -> str:
    return DASH if value is None else f"{value:+.2f}".replace("-", "−")


def _word(value: Any) -> str:
    return value if isinstance(value, str) and value else DASH
