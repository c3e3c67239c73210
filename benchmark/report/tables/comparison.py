"""The papers' kind of table: losses in rows, dataset and metric in columns, one section per batch size.

An option of the recipe that one loss alone was run with ("dim512") is a row of its own below the losses as they stand:
columns for it would be empty for all others.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.report.tables import TABLES
from benchmark.report.tables.labels import (
    loss_label,
    loss_order,
    metric_label,
    metric_order,
    place_label,
)
from benchmark.report.tables.numbers import DASH, known, mean_sd
from benchmark.report.tables.select import over_seeds, run_states, scores
from benchmark.report.tables.table import (
    Cell,
    Column,
    NothingToShow,
    Section,
    Table,
    marks,
    text_column,
)


@TABLES.register("comparison", display="Comparison of the losses")
def build(runs: pd.DataFrame, stats: dict[str, pd.DataFrame], study: Any) -> Table:
    """Returns mean ± sd over seeds at the last epoch; runs that gave no number are named, never skipped."""
    if runs.empty:
        raise NothingToShow("the grid of this study is empty: no run is recorded")
    try:
        means = over_seeds(scores(runs, study))
    except NothingToShow:
        means = pd.DataFrame(
            columns=["dataset", "setting", "split", "batch_size", "loss", "metric", "mean"]
        )
    states = run_states(runs)
    alone = _alone(states, means)
    means, states = _moved(means, alone), _moved(states, alone)
    metrics = metric_order(means["metric"].unique(), study) or list(study.metrics)
    places = _places(means, states)
    columns = [text_column("", "Loss")]
    columns += [
        Column((place_label(*place), metric_label(metric)), parts=("mean", "sd", "n"))
        for place in places
        for metric in metrics
    ]
    found = means.set_index(
        ["dataset", "setting", "split", "batch_size", "loss", "option", "metric"]
    ).to_dict("index")
    keys = ["dataset", "setting", "batch_size", "loss", "option"]
    counts = states.groupby([*keys, "status"], observed=True).size()
    grid: dict[tuple, dict[str, int]] = {}
    for (*key, status), number in counts.items():
        grid.setdefault(tuple(key), {})[status] = int(number)
    of_study = list(dict.fromkeys(block.setting.label.partition("~")[2] for block in study.blocks))
    most = int(means["n"].max()) if len(means) else 0
    sections = []
    for batch_size in sorted(states["batch_size"].unique()):
        part = states[states["batch_size"] == batch_size]
        options = part.groupby(part["loss"].astype(str))["option"].unique()
        rows_of = [
            (loss, option)
            for loss in loss_order(part["loss"], study)
            for option in sorted(
                options[loss], key=lambda each: of_study.index(each) if each in of_study else -1
            )
        ]
        by_column = []
        for place in places:
            state = [grid.get((*place[:2], batch_size, *row)) for row in rows_of]
            for metric in metrics:
                entries = [found.get((*place, batch_size, *row, metric)) for row in rows_of]
                # Marks follow the printed digits: what looks equal is marked equal.
                means_shown = [round(entry["mean"], 4) if entry else None for entry in entries]
                by_column.append(
                    [
                        _cell(entry, mark, its_runs, most)
                        for its_runs, entry, mark in zip(
                            state, entries, marks(means_shown), strict=True
                        )
                    ]
                )
        names = [
            ", ".join(filter(None, [loss_label(loss, study), *option.split("~")]))
            for loss, option in rows_of
        ]
        rows = [[Cell(name), *(column[i] for column in by_column)] for i, name in enumerate(names)]
        sections.append(Section(f"Batch size {batch_size}", rows))
    caption = (
        f"Test scores in percent at the last epoch, mean ± standard deviation over n = {most} seeds "
        "(other n is noted). Bold: best of the section's column; underlined: second."
        if most
        else "No finished run yet: each cell gives the state of its runs."
    )
    return Table("Comparison of the losses", caption, columns, sections)


def _alone(states: pd.DataFrame, means: pd.DataFrame) -> dict[tuple[str, str], str]:
    """Returns {(dataset, setting): the setting without options} of settings that one loss alone was run with, as far as
    others were run without the options and the same splits were measured there."""
    losses = states.groupby(["dataset", "setting"], observed=True)["loss"].nunique().to_dict()
    splits = (
        means.groupby(["dataset", "setting"], observed=True)["split"].agg(set).to_dict()
        if len(means)
        else {}
    )
    found = {}
    for (dataset, setting), number in losses.items():
        plain = str(setting).split("~")[0]
        fits = splits.get((dataset, setting), set()) <= splits.get((dataset, plain), set())
        if number == 1 and plain != setting and losses.get((dataset, plain), 0) > 1 and fits:
            found[dataset, setting] = plain
    return found


def _moved(table: pd.DataFrame, alone: dict[tuple[str, str], str]) -> pd.DataFrame:
    """Returns the table with the settings of ``alone`` moved to the plain ones, and their options in ``option``."""
    settings = table["setting"].astype(str)
    plain = [
        alone.get(key, key[1]) for key in zip(table["dataset"].astype(str), settings, strict=True)
    ]
    options = [
        one.removeprefix(other).lstrip("~") for one, other in zip(settings, plain, strict=True)
    ]
    return table.assign(setting=plain, option=options)


def _places(means: pd.DataFrame, states: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Returns the (dataset, setting, split) triples; places without any finished run count as "test"."""
    measured = {
        tuple(row) for row in means[["dataset", "setting", "split"]].drop_duplicates().to_numpy()
    }
    seen = {place[:2] for place in measured}
    asked = {tuple(row) for row in states[["dataset", "setting"]].drop_duplicates().to_numpy()}
    return sorted(measured | {(*place, "test") for place in asked - seen})


def _cell(
    entry: dict[str, Any] | None, mark: str, states: dict[str, int] | None, most: int
) -> Cell:
    if states is None:
        return Cell(DASH, tone="muted")
    lost = ", ".join(f"{number} {name}" for name, number in sorted(states.items()) if name != "ok")
    if entry is None:
        only = next(iter(states)) if len(states) == 1 else ""
        return Cell(
            DASH if only == "ok" else only or lost,
            tone="muted" if only in ("ok", "missing") else "bad",
        )
    n = int(entry["n"])
    notes = [f"n={n}"] if n != most else []
    notes += [lost] if lost else []
    numbers = (known(entry["mean"]), known(entry["sd"]), n)
    return Cell(mean_sd(entry["mean"], entry["sd"]), mark, ", ".join(notes), numbers)
