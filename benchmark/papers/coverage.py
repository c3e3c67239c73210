"""Which published numbers the shipped studies cover, and which of those have finished runs.

Counted are the numbers of ``benchmark.papers.references.countable_results``: printed tables of the four papers, trained by
their authors. A number is *finished* or *planned* when a run of some study belongs to it (the matching of verdicts),
*outside* with a reason that stands beside the numbers, and *missing* otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from benchmark.metrics.names import check_metric, metric_of
from benchmark.papers.references import countable_results
from benchmark.papers.verdicts.facts import study_facts
from benchmark.papers.verdicts.matching import fitting_cells, match_published
from benchmark.report.tables.papers.gaps import GAP, gap_decreases
from benchmark.runs.status import status_of
from benchmark.study import Study
from benchmark.study.grid import Run, expand
from benchmark.study.known import Known, load_known

FINISHED, PLANNED, OUTSIDE, MISSING = "finished", "planned", "outside", "missing"
STATES = (FINISHED, PLANNED, OUTSIDE, MISSING)
# Numbers that are no scores: what of a run they are read from. They are shown, and not judged.
MEASURED = {
    "backbone_time": "timing",
    "loss_time": "timing",
    "minutes_per_epoch": "timing",
    GAP: "'analyse decomposability_gap'",
}
COLUMNS = [
    "paper",
    "table",
    "row_label",
    "dataset",
    "protocol",
    "metric",
    "value",
    "state",
    "study",
    "run",
    "reason",
]


@dataclass(frozen=True)
class Planned:
    """The cells of one study (as the long table names them), their runs, and what is known of them."""

    study: Study
    cells: dict[tuple, list[Run]]
    facts: dict[tuple[str, str], dict[str, Any]]
    families: dict[str, tuple[str, ...]]  # dataset label -> metric families it gives


def coverage(studies: Iterable[Study], results: Path) -> pd.DataFrame:
    """Returns one row per countable number (``COLUMNS``); a number is covered by studies that name its paper."""
    known = load_known()
    planned = [_planned(study, known) for study in studies]
    rows = [_row(row, planned, Path(results)) for row in countable_results().to_dict("records")]
    return pd.DataFrame(rows, columns=COLUMNS)


def counts(table: pd.DataFrame) -> pd.DataFrame:
    """Returns the number of rows in each state, one row per paper and table, with their sum as ``numbers``."""
    found = (
        table.groupby(["paper", "table", "state"], sort=False).size().unstack("state", fill_value=0)
    )
    found = found.reindex(columns=list(STATES), fill_value=0).rename_axis(columns=None)
    found.insert(0, "numbers", found.sum(axis=1))
    return found.reset_index().sort_values(
        ["paper", "table"], key=_in_print_order, ignore_index=True
    )


def _in_print_order(names: pd.Series) -> pd.Series:
    """Returns what papers and tables are sorted by: table2 before table10, and both before tableS1."""
    return names.map(lambda name: re.sub(r"\d+", lambda digits: digits[0].zfill(4), name))


def as_text(table: pd.DataFrame) -> str:
    """Returns the coverage as a table for a terminal, and all numbers that no run covers with the reason."""
    found = counts(table)
    total = found.drop(columns=["paper", "table"]).sum()
    lines = [("paper", "table", "numbers", "in a study", "finished", "outside", "missing")]
    for row in [*found.to_dict("records"), {"paper": "all", "table": "", **total}]:
        values = (
            row["numbers"],
            row[FINISHED] + row[PLANNED],
            row[FINISHED],
            row[OUTSIDE],
            row[MISSING],
        )
        lines.append((row["paper"], row["table"], *map(str, values)))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [
        "  ".join(
            value.ljust(width) if at < 2 else value.rjust(width)
            for at, (value, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]
    for state, head in ((OUTSIDE, "outside of the studies"), (MISSING, "missing")):
        part = table[table["state"] == state]
        if len(part):
            text += ["", f"{head}: {len(part)} numbers"]
        for reason, group in part.groupby("reason", sort=False):
            text.append(f"  {len(group)}: {reason}")
            for (paper, name), rows in group.groupby(["paper", "table"], sort=False):
                text.append(f"      {paper} {name}: {', '.join(dict.fromkeys(rows['row_label']))}")
    return "\n".join(text)


def _planned(study: Study, known: Known) -> Planned:
    cells: dict[tuple, list[Run]] = {}
    for run in expand(study).values():
        found = run.spec.cell
        cell = (found.dataset, found.setting.label, found.loss, found.base_loss, found.batch_size)
        cells.setdefault(cell, []).append(run)
    families = {
        choice.label: known.datasets[choice.name]
        for block in study.blocks
        for choice in block.datasets
    }
    return Planned(study, cells, study_facts(study), families)


def _row(row: dict[str, Any], planned: list[Planned], results: Path) -> dict[str, Any]:
    facts = {name: row[name] for name in COLUMNS if name in row}
    if row["outside"]:
        return {**facts, "state": OUTSIDE, "study": "", "run": "", "reason": row["outside"]}
    reasons = []
    for part in planned:
        asked = part.study.references.published
        if row["paper"] not in asked and f"{row['paper']}/{row['table']}" not in asked:
            continue
        cell, reason = _cell(row, part)
        if cell is None:
            reasons.append((part.study.name, reason))
            continue
        runs = part.cells[cell]
        done = _done(row, runs, part.study, results)
        words = (
            "" if row["score"] else f"no score: measured by {MEASURED[row['metric']]}, not judged"
        )
        place = runs[0].spec.run_id.rpartition("/")[0]
        return {
            **facts,
            "state": FINISHED if done else PLANNED,
            "study": part.study.name,
            "run": place,
            "reason": words,
        }
    # the study of the paper's own datasets knows best what is missing: its reason is the longest
    reason = max((words for _, words in reasons), key=len, default="there is no study")
    return {**facts, "state": MISSING, "study": "", "run": "", "reason": reason}


def _done(row: dict[str, Any], runs: list[Run], study: Study, results: Path) -> bool:
    """Returns whether something measured the number: a run, or the analysis that trains networks of its own."""
    if row["metric"] == GAP:
        return row["dataset"] in set(gap_decreases(study.folder(results))["dataset"])
    return any(status_of(run, results).status == "ok" for run in runs)


def _cell(row: dict[str, Any], part: Planned) -> tuple[tuple | None, str]:
    """Returns the cell that a number belongs to, or None and the reason."""
    cells = list(part.cells)
    if not row["score"]:
        fitting = fitting_cells(row, cells, part.facts) if row["metric"] in MEASURED else []
        return (
            (fitting[0], "") if fitting else (None, f"'{row['metric']}' is not measured by any run")
        )
    match = match_published(row, cells, {}, part.facts)
    if match.cell is None:
        return None, match.reason
    facts = part.facts[match.cell[0], match.cell[1]]
    k = row["metric"].removeprefix("recall_at_")
    measured = k == row["metric"] or int(k) in facts["recall_at"]
    if (
        check_metric(row["metric"])
        or metric_of(row["metric"]).family not in part.families[match.cell[0]]
    ):
        measured = False
    return (
        (match.cell, "")
        if measured
        else (None, f"'{row['metric']}' is not measured in {match.cell[1]}")
    )
