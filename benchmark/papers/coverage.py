"""Which published numbers the shipped studies cover, and which of those have finished runs.

A number is *finished* or *planned* when a run of some study belongs to it (the matching of
verdicts), *outside* with a reason that stands beside the numbers, and *missing* otherwise. One in a
study that a verdict judges is *faithful* where the paper or its own code states every value that
may move a score by 0.3 points or more, and ours is that; else it rests on an assumption. Times and
counts are measured and not judged.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from benchmark.datasets import dataset_metrics
from benchmark.metrics.metric import k_of, metric_of
from benchmark.papers.matching import Candidate, candidates, fits, match, stated_by
from benchmark.papers.paper import countable_numbers
from benchmark.papers.quantities import GAP, gap_decreases
from benchmark.papers.schema import PublishedNumber
from benchmark.papers.vocabulary import load_vocabulary
from benchmark.runs.folders import status_in
from benchmark.study import Study
from benchmark.study.grid import expand

STATES = FINISHED, PLANNED, OUTSIDE, MISSING = "finished", "planned", "outside", "missing"
COLUMNS = (
    *("paper", "table", "row_label", "dataset", "protocol", "metric", "value", "line"),
    *("state", "study", "run", "reason", "assumed", "judged"),
)


def coverage(studies: Iterable[Study], results: Path) -> pd.DataFrame:
    """Return one row per countable number (``COLUMNS``): its run, or the reason why it has none.

    A number is covered by studies that name its paper or table.
    """
    grids = [(study, list(candidates(study).values())) for study in studies]
    rows = []
    for number in countable_numbers():
        if number.outside:
            state = (OUTSIDE, "", "", number.outside, "")
        else:
            state = _state(number, grids, results)
        row = [
            number.source,
            number.table,
            number.row_label,
            number.dataset,
            number.protocol,
            number.metric,
            float(number.value),
            number.line,
            *state,
            number.judged,
        ]
        rows.append(row)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _state(
    number: PublishedNumber, grids: Iterable[tuple[Study, list[Candidate]]], results: Path
) -> tuple[str, str, str, str, str]:
    """Return state, study, run, reason and what the run assumes."""
    reasons = []
    for study, grid in grids:
        if not number.places & set(study.references.published):
            continue
        candidate, words = _candidate(number, grid)
        if candidate is None:
            reasons.append(words)
            continue
        cell = candidate.cell
        if number.metric == GAP:  # measured by an analysis
            gaps = gap_decreases(study.folder(results))
            done = any(each.dataset == number.dataset for each in gaps)
        else:
            specs = (run.spec for run in expand(study).values() if run.spec.cell == cell)
            done = any(status_in(results / each.folder, each).status == "ok" for each in specs)
        state = FINISHED if done else PLANNED
        return state, study.name, cell.label, words, candidate.assumed
    # the study of the paper's own datasets knows best what is missing: its reason is the longest
    return MISSING, "", "", max(reasons or ["there is no study"], key=len), ""


def _candidate(number: PublishedNumber, grid: list[Candidate]) -> tuple[Candidate | None, str]:
    """Return the candidate that a number belongs to with a remark, or None and the reason."""
    stated = stated_by(number)
    metric = number.metric
    if not number.is_score:
        quantity = load_vocabulary().quantities.get(metric)
        fitting = [each for each in grid if quantity and fits(stated, each)]
        if quantity is None or not fitting:
            return None, f"'{metric}' is not measured by any run"
        return fitting[0], f"no score: measured by {quantity.source}, not judged"
    found = match(stated, grid)
    if found.candidate is None:
        return None, found.reason
    family = metric_of(metric)
    dataset = found.candidate.settings["dataset.name"]
    measured = family is not None and family.family in dataset_metrics(dataset)
    if not measured or k_of(metric) not in (None, *found.candidate.recall_at):
        return None, f"'{metric}' is not measured in {found.candidate.cell.setting}"
    return found.candidate, ""


def counts(table: pd.DataFrame) -> pd.DataFrame:
    """Return the count of each state per paper and table, with their sum as ``numbers``."""
    states = pd.crosstab([table["paper"], table["table"]], table["state"])
    states = states.reindex(columns=list(STATES), fill_value=0).rename_axis(columns=None)
    states.insert(0, "numbers", states.sum(axis=1))
    return states.reset_index().sort_values(
        ["paper", "table"],  # table2 before table10, and both before tableS1
        key=lambda names: names.str.replace(r"\d+", lambda n: n[0].zfill(4), regex=True),
        ignore_index=True,
    )


def as_text(table: pd.DataFrame) -> str:
    """Return the coverage for a terminal, and why some numbers have no run."""
    shown = counts(table)
    shown.loc[len(shown)] = {**shown.sum(numeric_only=True), "paper": "all", "table": ""}
    shown.insert(3, "in a study", shown[FINISHED] + shown[PLANNED])
    text = [shown.drop(columns=PLANNED).to_string(index=False), ""]
    covered = table["state"].isin([FINISHED, PLANNED])
    judged = covered & table["judged"]
    rests = table["assumed"] != ""
    beside = [each.judged for each in countable_numbers(beside=True)]
    text += [
        f"{(judged & ~rests).sum()} numbers are faithful, {(judged & rests).sum()} rest on a "
        f"stated assumption, {(covered & ~judged).sum()} are measured and not judged, "
        f"{(table['state'] == OUTSIDE).sum()} are outside; of the {len(beside)} printed in figures "
        f"and text {sum(beside)} are judged"
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
