"""The papers' kind of table: losses in rows, dataset and metric in columns, one section per batch size."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.tables import TABLES
from benchmark.tables.labels import loss_label, loss_order, metric_label, metric_order, place_label
from benchmark.tables.numbers import DASH, known, mean_sd
from benchmark.tables.select import over_seeds, run_states, scores
from benchmark.tables.table import Cell, Column, NothingToShow, Section, Table, marks, text_column


@TABLES.register("comparison", display="Comparison of the losses")
def build(runs: pd.DataFrame, stats: dict[str, pd.DataFrame], study: Any) -> Table:
    """Returns mean ± sd over seeds at the last epoch; runs that gave no number are named, never skipped."""
    if runs.empty:
        raise NothingToShow("the grid of this study is empty: no run is recorded")
    try:
        means = over_seeds(scores(runs, study))
    except NothingToShow:
        means = pd.DataFrame(columns=["dataset", "setting", "split", "batch_size", "loss", "metric", "mean"])
    states = run_states(runs)
    metrics = metric_order(means["metric"].unique(), study) or list(study.metrics)
    places = _places(means, states)
    columns = [text_column("", "Loss")]
    columns += [
        Column((place_label(*place), metric_label(metric)), parts=("mean", "sd", "n"))
        for place in places
        for metric in metrics
    ]
    found = means.set_index(["dataset", "setting", "split", "batch_size", "loss", "metric"]).to_dict("index")
    keys = ["dataset", "setting", "batch_size", "loss"]
    counts = states.groupby([*keys, "status"], observed=True).size()
    grid: dict[tuple, dict[str, int]] = {}
    for (*key, status), number in counts.items():
        grid.setdefault(tuple(key), {})[status] = int(number)
    most = int(means["n"].max()) if len(means) else 0
    sections = []
    for batch_size in sorted(states["batch_size"].unique()):
        losses = loss_order(states.loc[states["batch_size"] == batch_size, "loss"], study)
        by_column = []
        for place in places:
            state = {loss: grid.get((place[0], place[1], batch_size, loss)) for loss in losses}
            for metric in metrics:
                entries = [found.get((*place, batch_size, loss, metric)) for loss in losses]
                # Marks follow the printed digits: what looks equal is marked equal.
                means_shown = [round(entry["mean"], 4) if entry else None for entry in entries]
                by_column.append(
                    [
                        _cell(entry, mark, state[loss], most)
                        for loss, entry, mark in zip(losses, entries, marks(means_shown), strict=True)
                    ]
                )
        rows = [[Cell(loss_label(loss, study)), *(column[i] for column in by_column)] for i, loss in enumerate(losses)]
        sections.append(Section(f"Batch size {batch_size}", rows))
    caption = (
        f"Test scores in percent at the last epoch, mean ± standard deviation over n = {most} seeds "
        "(other n is noted). Bold: best of the section's column; underlined: second."
        if most
        else "No finished run yet: each cell gives the state of its runs."
    )
    return Table("Comparison of the losses", caption, columns, sections)


def _places(means: pd.DataFrame, states: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Returns the (dataset, setting, split) triples; places without any finished run count as "test"."""
    measured = {tuple(row) for row in means[["dataset", "setting", "split"]].drop_duplicates().to_numpy()}
    seen = {place[:2] for place in measured}
    asked = {tuple(row) for row in states[["dataset", "setting"]].drop_duplicates().to_numpy()}
    return sorted(measured | {(*place, "test") for place in asked - seen})


def _cell(entry: dict[str, Any] | None, mark: str, states: dict[str, int] | None, most: int) -> Cell:
    if states is None:
        return Cell(DASH, tone="muted")
    lost = ", ".join(f"{number} {name}" for name, number in sorted(states.items()) if name != "ok")
    if entry is None:
        only = next(iter(states)) if len(states) == 1 else ""
        return Cell(DASH if only == "ok" else only or lost, tone="muted" if only in ("ok", "missing") else "bad")
    n = int(entry["n"])
    notes = [f"n={n}"] if n != most else []
    notes += [lost] if lost else []
    numbers = (known(entry["mean"]), known(entry["sd"]), n)
    return Cell(mean_sd(entry["mean"], entry["sd"]), mark, ", ".join(notes), numbers)
