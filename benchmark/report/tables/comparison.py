"""The papers' kind of table: losses in rows, dataset and metric in columns, sections by batch size.

An option of the recipe that one loss alone was run with ("dim512") is a row of its own below the
losses as they stand: columns for it would be empty for all others.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import pandas as pd

from benchmark.report.inputs import WHERE, Inputs, records
from benchmark.report.labels import (
    dataset_label,
    loss_label,
    loss_order,
    metric_label,
    metric_order,
)
from benchmark.report.numbers import DASH, mean_sd
from benchmark.report.table import (
    Column,
    NothingToShow,
    Section,
    Table,
    TableCell,
    marks,
    text_column,
)
from benchmark.report.tables import TABLES

Options = tuple[str, ...]
Moved = dict[tuple[str, str], tuple[str, Options]]


@TABLES.register("comparison", display="Comparison of the losses")
def build(inputs: Inputs) -> Table:
    """Return mean ± sd over seeds at the last epoch; runs without a number are named."""
    runs, study = inputs.compared_runs, inputs.study
    if runs.empty:
        raise NothingToShow("the grid of this study is empty: no run is recorded")
    try:
        means = inputs.last
    except NothingToShow:
        means = pd.DataFrame(columns=[*WHERE, "batch_size", "loss", "metric", "n"])
    moved = _moved(runs, means)
    states: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    for run in records(runs):
        setting, options = moved[run.dataset, run.setting]
        states[run.dataset, setting, run.batch_size, run.loss, options][run.status] += 1
    lost = {
        (dataset, moved[dataset, setting][0], size, loss, moved[dataset, setting][1])
        for dataset, setting, size, loss in inputs.diverging
    }
    scores: dict[tuple[Any, ...], Any] = {}
    for row in records(means):
        setting, options = moved[row.dataset, row.setting]
        cell = (row.dataset, setting, row.batch_size, row.loss, options)
        scores[cell, row.split, row.metric] = row

    measured = {(cell[0], cell[1], split) for cell, split, _ in scores}
    unmeasured = {cell[:2] for cell in states} - {where[:2] for where in measured}
    places = sorted(measured | {(*where, "test") for where in unmeasured})
    metrics = metric_order(means["metric"].unique(), study) or list(study.metrics)
    columns = [(*place, metric) for place in places for metric in metrics]
    most = int(means["n"].max()) if len(means) else 0
    options_order = [(), *dict.fromkeys(runs["options"])]
    sections = []
    for batch_size in sorted(runs["batch_size"].unique()):
        labels = {cell[3:] for cell in states if cell[2] == batch_size}
        losses = loss_order((loss for loss, _ in labels), study)
        rows = sorted(labels, key=lambda row: (losses.index(row[0]), options_order.index(row[1])))
        by_column = []
        for dataset, setting, split, metric in columns:
            cells = [(dataset, setting, batch_size, *row) for row in rows]
            entries = [scores.get((cell, split, metric)) for cell in cells]
            # Marks follow the printed digits: what looks equal is marked equal.
            ranked = (
                None if entry is None or cell in lost else round(entry.mean, 4)
                for entry, cell in zip(entries, cells, strict=True)
            )
            marked = marks(list(ranked))
            by_column.append(
                [
                    _cell(entry, mark, states.get(cell), most)
                    for entry, mark, cell in zip(entries, marked, cells, strict=True)
                ]
            )
        names = [TableCell(", ".join([loss_label(loss, study), *tags])) for loss, tags in rows]
        lines = [list(line) for line in zip(names, *by_column, strict=True)]
        sections.append(Section(f"Batch size {batch_size}", lines))
    caption = (
        "Test scores in percent at the last epoch, mean ± standard deviation over "
        f"n = {most} seeds (other n is noted). Bold: best of the section's column; "
        "underlined: second; a loss that diverges is neither."
        if most
        else "No finished run yet: each cell gives the state of its runs."
    )
    headers = [
        Column((dataset_label(*place), metric_label(metric)), parts=("mean", "sd", "n"))
        for *place, metric in columns
    ]
    return Table("Comparison of the losses", caption, [text_column("", "Loss"), *headers], sections)


def _moved(runs: pd.DataFrame, means: pd.DataFrame) -> Moved:
    """Return {(dataset, setting): (setting of its columns, options in the names of its rows)}.

    A setting moves to the backbone without options if one loss alone was run with them, several
    were run without them, and the same splits were measured there.
    """
    losses = runs.groupby(["dataset", "setting"])["loss"].nunique()
    splits = defaultdict(set)
    for dataset, setting, split in means[WHERE].itertuples(index=False):
        splits[dataset, setting].add(split)
    moved: Moved = {}
    distinct = runs.drop_duplicates(["dataset", "setting"])
    for run in records(distinct):
        here, plain = (run.dataset, run.setting), (run.dataset, run.backbone)
        single = run.options and losses[here] == 1 and losses.get(plain, 0) > 1
        moves = single and splits[here] <= splits[plain]
        moved[here] = (run.backbone, run.options) if moves else (run.setting, ())
    return moved


def _cell(entry: Any, mark: str, states: Mapping[str, int] | None, most: int) -> TableCell:
    if states is None:
        return TableCell(DASH, tone="muted")
    lost = ", ".join(f"{number} {name}" for name, number in sorted(states.items()) if name != "ok")
    if entry is not None:
        notes = [f"n={entry.n}"] * (entry.n != most) + [lost] * bool(lost)
        numbers = (entry.mean, entry.sd if entry.n > 1 else None, entry.n)
        return TableCell(mean_sd(entry.mean, entry.sd), mark, ", ".join(notes), numbers)
    if len(states) > 1:
        return TableCell(lost, tone="bad")
    (state,) = states
    tone = "muted" if state in ("ok", "missing") else "bad"
    return TableCell(DASH if state == "ok" else state, tone=tone)
