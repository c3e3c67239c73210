"""Which published numbers the shipped studies cover, and which of those have finished runs.

A number is *finished* or *planned* if a run of some study belongs to it, by the matching of
verdicts. It is *outside* if ``outside.yaml`` of its paper gives a reason, and *missing* otherwise.
A judged number is *faithful* if the paper or its own code states every value that may move a score
by 0.3 points or more, and our values are the stated ones. Otherwise the number rests on an
assumption. Times and counts are measured and not judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from benchmark.core.records import Cell, RunSpec
from benchmark.datasets import dataset_metrics
from benchmark.metrics.metric import k_of, metric_of
from benchmark.published.loading import load_papers
from benchmark.published.quantities import GAP, gap_decreases
from benchmark.published.schema import PublishedNumber
from benchmark.published.vocabulary import load_vocabulary
from benchmark.runs.folders import status_in
from benchmark.study import Study
from benchmark.study.grid import expand
from benchmark.verdicts.matching import Candidate, StudyGrid, fits, match, rests_on, stated_by

STATES = FINISHED, PLANNED, OUTSIDE, MISSING = "finished", "planned", "outside", "missing"
COLUMNS = [
    "paper", "table", "row_label", "dataset", "protocol", "metric", "value", "line",
    "state", "study", "run", "reason", "assumed", "judged",
]  # fmt: skip


def coverage(studies: Iterable[Study], results: Path) -> pd.DataFrame:
    """Return one row per countable number (``COLUMNS``): its run, or why it has no run.

    A number is covered by studies that name its paper or table.
    """
    grids = []
    for study in studies:
        specs = defaultdict(list)
        for run in expand(study).values():
            specs[run.spec.cell].append(run.spec)
        grids.append(_Grid(study, list(StudyGrid.of(study).candidates.values()), specs))
    rows = []
    for number in load_papers().countable():
        state = {"state": OUTSIDE, "reason": number.outside}
        if not number.outside:
            state = _state(number, grids, results)
        facts = {"paper": number.source, "value": float(number.value), "judged": number.judged}
        rows.append({**vars(number), **facts, **state})
    return pd.DataFrame(rows, columns=COLUMNS).fillna("")


class _Grid(NamedTuple):
    study: Study
    candidates: list[Candidate]
    specs: Mapping[Cell, list[RunSpec]]


def _state(number: PublishedNumber, grids: Iterable[_Grid], results: Path) -> dict[str, str]:
    """Return state, study, run, reason and what the run assumes, as far as there is a run."""
    reasons = []
    for grid in grids:
        study = grid.study
        if not number.places & set(study.references.published):
            continue
        candidate, words = _candidate(number, grid.candidates)
        if candidate is None:
            reasons.append(words)
            continue
        cell = candidate.cell
        if number.metric == GAP:  # measured by an analysis
            gaps = gap_decreases(study.folder(results))
            done = any(gap.dataset == number.dataset for gap in gaps)
        else:
            specs = grid.specs[cell]
            done = any(status_in(results / spec.folder, spec).status == "ok" for spec in specs)
        return {
            "state": FINISHED if done else PLANNED,
            "study": study.name,
            "run": cell.label,
            "reason": words,
            "assumed": rests_on(number, candidate),
        }
    # the study of the paper's own datasets knows best what is missing: its reason is the longest
    return {"state": MISSING, "reason": max(reasons or ["there is no study"], key=len)}


def _candidate(number: PublishedNumber, grid: list[Candidate]) -> tuple[Candidate | None, str]:
    """Return the candidate that a number belongs to with a remark, or None and the reason."""
    stated = stated_by(number)
    metric = number.metric
    if not number.is_score:
        quantity = load_vocabulary().quantities.get(metric)
        fitting = [candidate for candidate in grid if quantity and fits(stated, candidate)]
        if quantity is None or not fitting:
            return None, f"'{metric}' is not measured by any run"
        return fitting[0], f"no score: measured by {quantity.source}, not judged"
    matched = match(stated, grid)
    candidate = matched.candidate
    if candidate is None:
        return None, matched.reason
    family = metric_of(metric)
    dataset = candidate.settings["dataset.name"]
    measured = family is not None and family.family in dataset_metrics(dataset)
    if not measured or k_of(metric) not in (None, *candidate.recall_at):
        return None, f"'{metric}' is not measured in {candidate.cell.setting}"
    return candidate, ""


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
    beside = [number.judged for number in load_papers().countable(beside=True)]
    text += [
        f"{(judged & ~rests).sum()} numbers are faithful, {(judged & rests).sum()} rest on a "
        f"stated assumption, {(covered & ~judged).sum()} are measured and not judged, "
        f"{(table['state'] == OUTSIDE).sum()} are outside; of the {len(beside)} printed in figures "
        f"and text {sum(beside)} are judged"
    ]
    for state, head in ((OUTSIDE, "outside of the studies"), (MISSING, "missing")):
        in_state = table[table["state"] == state]
        if len(in_state):
            text += ["", f"{head}: {len(in_state)} numbers"]
        for reason, group in in_state.groupby("reason", sort=False):
            text.append(f"  {len(group)}: {reason}")
            for (paper, name), rows in group.groupby(["paper", "table"], sort=False):
                labels = ", ".join(dict.fromkeys(rows["row_label"]))
                text.append(f"      {paper} {name}: {labels}")
    return "\n".join(text)
