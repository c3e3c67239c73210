"""What training costs, and how much of it is the loss."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.tables import TABLES
from benchmark.tables.labels import group_label, loss_label, loss_order
from benchmark.tables.numbers import duration, known, plain
from benchmark.tables.select import cost_values, groups
from benchmark.tables.table import Cell, Column, Section, Table, text_column


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
    sections = []
    for (dataset, setting, batch_size), part in groups(costs, ["dataset", "setting", "batch_size"]):
        rows = [
            _row(loss_label(loss, study), batch_size, part[part["loss"] == loss])
            for loss in loss_order(part["loss"], study)
        ]
        sections.append(Section(group_label(dataset, setting, batch_size), rows))
    caption = (
        "Wall time of training without evaluation, throughput, and time inside the loss (forward and backward), means "
        "over seeds. The share is the loss's time divided by the time of a step (batch size / images per second). "
        "Times depend on the machine and its load; compare them within this table only."
    )
    return Table("Cost of training", caption, columns, sections)


def _row(loss: str, batch_size: int, values: pd.DataFrame) -> list[Cell]:
    seconds, rate, loss_ms = (_mean(values, name) for name in ("train_seconds", "images_per_second", "loss_ms"))
    gpu, host = _mean(values, "peak_gpu_mb"), _mean(values, "peak_rss_mb")
    memory = gpu or host
    share = loss_ms / 1000 * rate / batch_size if loss_ms is not None and rate else None
    return [
        Cell(loss),
        Cell(duration(seconds), numbers=(seconds,)),
        Cell(plain(rate, 0), numbers=(rate,)),
        Cell(plain(loss_ms), numbers=(loss_ms,)),
        Cell("–" if share is None else f"{100 * share:.1f} %", numbers=(share,)),
        Cell(plain(memory, 0), note="GPU" if gpu else "", numbers=(memory,)),
        Cell(str(len(values)), numbers=(len(values),)),
    ]


def _mean(values: pd.DataFrame, name: str) -> float | None:
    return known(values[name].mean()) if name in values else None
