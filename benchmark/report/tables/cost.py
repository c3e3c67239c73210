"""What training costs, and how much of it is the loss."""

from typing import Any

from benchmark.report.inputs import Inputs
from benchmark.report.numbers import DASH, duration, finite, plain, whole
from benchmark.report.pairs import by_condition, loss_field
from benchmark.report.table import (
    Column,
    Field,
    Table,
    TableCell,
    filled,
    number_cell,
    numbers,
)
from benchmark.report.tables import TABLES


@TABLES.register("cost", display="Cost of training")
def build(inputs: Inputs) -> Table:
    """Return training time, throughput, time in the loss and its share of a step, and memory."""
    costs = inputs.some("costs")
    fields = [
        loss_field(inputs.study),
        numbers("Training time", duration, seconds="train_seconds"),
        numbers("Images/s", whole, mean="images_per_second"),
        numbers("Loss, ms per step", plain, mean="loss_ms"),
        numbers("Loss, share of step", _share, share="loss_share"),
        Field(Column(("Peak memory, MB",), parts=("mean",)), _memory),
        numbers("n", str, runs="n"),
    ]
    caption = (
        "Wall time of training without evaluation, throughput, and time inside the loss (forward "
        "and backward), means over seeds. The share is the loss's time divided by the time of a "
        "step (batch size / images per second). Memory is the host's, or the GPU's where marked. "
        "Times depend on the machine and its load; compare them within this table only."
    )
    return filled("Cost of training", caption, fields, by_condition(costs, inputs.study))


def _memory(row: Any) -> TableCell:
    gpu = finite(row.peak_gpu_mb)
    return number_cell(whole, gpu or row.peak_rss_mb, note="GPU" if gpu else "")


def _share(value: Any) -> str:
    return DASH if finite(value) is None else f"{100 * value:.1f} %"
