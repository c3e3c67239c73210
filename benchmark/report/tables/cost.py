"""What training costs, and how much of it is the loss."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.report.tables import TABLES
from benchmark.report.tables.labels import group_label, loss_label, loss_order
from benchmark.report.tables.numbers import DASH, duration, known, plain
from benchmark.report.tables.select import cost_values
from benchmark.report.tables.table import Cell, Column, Section, Table, text_column


@TABLES.register("cost", display="Cost of training")
def build(runs: pd.DataFrame, stats: dict[str, pd.DataFrame], study: Any) -> Table:
    """Returns training time, throughput, time in the loss and its share of a step, means over seeds."""
    costs = cost_values(runs)
    columns = [
        text_column("Loss"),
        Column(("Training time",), parts=("seconds",)),
        Column(("Images/s",), parts=("mean",)),
        Column(("Loss, ms per step",), parts=("mean",)),
        Column(("Loss, share of step",), parts=("share",)),
        Column(("Peak memory, MB",), parts=("mean",)),
        Column(("n",), parts=("runs",)),
    ]
    keys = ["dataset", "setting", "batch_size", "loss"]
    grouped = costs.drop(columns="seed").groupby(keys, observed=True)
    means = grouped.mean().assign(runs=grouped.size()).reset_index().to_dict("records")
    order = {loss: index for index, loss in enumerate(loss_order(costs["loss"].unique(), study))}
    means.sort(
        key=lambda row: (row["dataset"], row["setting"], row["batch_size"], order[row["loss"]])
    )
    sections: dict[str, list[list[Cell]]] = {}
    for row in means:
        title = group_label(row["dataset"], row["setting"], row["batch_size"])
        sections.setdefault(title, []).append(_row(row, study))
    caption = (
        "Wall time of training without evaluation, throughput, and time inside the loss (forward and backward), means "
        "over seeds. The share is the loss's time divided by the time of a step (batch size / images per second). "
        "Times depend on the machine and its load; compare them within this table only."
    )
    return Table(
        "Cost of training",
        caption,
        columns,
        [Section(title, rows) for title, rows in sections.items()],
    )


def _row(row: dict[str, Any], study: Any) -> list[Cell]:
    seconds, rate, loss_ms = (
        known(row.get(name)) for name in ("train_seconds", "images_per_second", "loss_ms")
    )
    gpu, host = known(row.get("peak_gpu_mb")), known(row.get("peak_rss_mb"))
    memory = gpu or host
    share = loss_ms / 1000 * rate / row["batch_size"] if loss_ms is not None and rate else None
    return [
        Cell(loss_label(row["loss"], study)),
        Cell(duration(seconds), numbers=(seconds,)),
        Cell(plain(rate, 0), numbers=(rate,)),
        Cell(plain(loss_ms), numbers=(loss_ms,)),
        Cell(DASH if share is None else f"{100 * share:.1f} %", numbers=(share,)),
        Cell(plain(memory, 0), note="GPU" if gpu else "", numbers=(memory,)),
        Cell(str(row["runs"]), numbers=(row["runs"],)),
    ]
