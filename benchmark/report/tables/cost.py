"""What training costs, and how much of it is the loss."""

from typing import Any

from benchmark.report.inputs import Inputs
from benchmark.report.numbers import DASH, duration, finite, plain
from benchmark.report.pairs import by_condition
from benchmark.report.render.table import (
    Column,
    NothingToShow,
    Table,
    TableCell,
    number_cell,
    text_column,
)
from benchmark.report.tables import TABLES


@TABLES.register("cost", display="Cost of training")
def build(inputs: Inputs) -> Table:
    """Return training time, throughput, time in the loss and its share of a step, and memory."""
    costs = inputs.costs
    if costs.empty:
        raise NothingToShow("no finished run has recorded its cost yet")
    columns = [
        text_column("Loss"),
        Column(("Training time",), parts=("seconds",)),
        Column(("Images/s",), parts=("mean",)),
        Column(("Loss, ms per step",), parts=("mean",)),
        Column(("Loss, share of step",), parts=("share",)),
        Column(("Peak memory, MB",), parts=("mean",)),
        Column(("n",), parts=("runs",)),
    ]
    caption = (
        "Wall time of training without evaluation, throughput, and time inside the loss (forward "
        "and backward), means over seeds. The share is the loss's time divided by the time of a "
        "step (batch size / images per second). Memory is the host's, or the GPU's where marked. "
        "Times depend on the machine and its load; compare them within this table only."
    )
    return Table("Cost of training", caption, columns, by_condition(costs, inputs.study, _cells))


def _cells(row: Any) -> list[TableCell]:
    gpu = finite(row.peak_gpu_mb)
    return [
        number_cell(duration, row.train_seconds),
        number_cell(lambda rate: plain(rate, 0), row.images_per_second),
        number_cell(plain, row.loss_ms),
        number_cell(_share, row.loss_share),
        number_cell(
            lambda memory: plain(memory, 0), gpu or row.peak_rss_mb, note="GPU" if gpu else ""
        ),
        number_cell(str, row.n),
    ]


def _share(value: Any) -> str:
    return DASH if finite(value) is None else f"{100 * value:.1f} %"
