"""Runs without a usable result, each with its reason."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.report.tables import TABLES
from benchmark.report.tables.labels import loss_label, place_label
from benchmark.report.tables.numbers import count
from benchmark.report.tables.select import run_states
from benchmark.report.tables.table import Cell, Column, NothingToShow, Section, Table, text_column

_ORDER = {"failed": 0, "diverged": 1, "stale": 2, "missing": 3}
_MEANING = {
    "failed": "the job ended with an error",
    "diverged": "the loss became infinite or not a number: a result, shown as such",
    "stale": "made from another specification than the study now asks for",
    "missing": "not run yet",
}


@TABLES.register("missing", display="Runs without a result")
def build(runs: pd.DataFrame, stats: dict[str, pd.DataFrame], study: Any) -> Table:
    """Returns failed, diverged, stale and missing runs; raises NothingToShow when every run finished."""
    states = run_states(runs)
    lost = states[states["status"] != "ok"]
    if lost.empty:
        raise NothingToShow(
            f"nothing is missing: all {count(len(states), 'run')} finished"
            if len(states)
            else "no run is recorded for this study"
        )
    lost = lost.assign(order=lost["status"].astype(str).map(_ORDER).fillna(9))
    lost = lost.sort_values(["order", "dataset", "setting", "loss", "batch_size", "seed"])
    tones = {"missing": "muted", "stale": "unsure"}
    names = {loss: loss_label(loss, study) for loss in lost["loss"].unique()}
    rows = [
        [
            Cell(run.status, tone=tones.get(run.status, "bad")),
            Cell(place_label(run.dataset, run.setting)),
            Cell(names[run.loss]),
            Cell(str(run.batch_size), numbers=(run.batch_size,)),
            Cell(str(run.seed), numbers=(run.seed,)),
            Cell(run.reason or _MEANING.get(run.status, "")),
        ]
        for run in lost.itertuples()
    ]
    columns = [text_column("Status"), text_column("Dataset · setting"), text_column("Loss")]
    columns += [Column(("Batch size",)), Column(("Seed",)), text_column("Reason")]
    counts = lost["status"].astype(str).value_counts()
    parts = [
        f"{counts[name]} {name} ({_MEANING.get(name, '')})"
        for name in sorted(counts.index, key=_ORDER.get)
    ]
    caption = (
        f"{len(lost)} of {count(len(states), 'run')} gave no usable number: {'; '.join(parts)}."
    )
    return Table("Runs without a result", caption, columns, [Section("", rows)])
