"""Time inside the loss against batch size."""

from benchmark.report.drawing import DOUBLE, SINGLE, Drawing, legend_below, styled
from benchmark.report.figures import FIGURES
from benchmark.report.inputs import Inputs
from benchmark.report.labels import loss_order
from benchmark.report.panels import (
    by_batch_size,
    keys_of,
    left_out,
    loss_series,
    panel_grid,
    panel_title,
    rows_of,
)
from benchmark.report.table import NothingToShow

PLACE = ["dataset", "setting"]


@FIGURES.register("loss_cost", display="Cost of the loss")
def build(inputs: Inputs) -> Drawing:
    """Return milliseconds per step against batch size; bars from least to greatest seed."""
    study = inputs.study
    costs = inputs.costs if inputs.costs.empty else inputs.costs[inputs.costs["loss_ms"] > 0]
    if costs.empty:
        raise NothingToShow("no finished run has recorded the time inside its loss")
    names = {"loss_ms": "mean", "loss_ms_minimum": "low", "loss_ms_maximum": "high"}
    times = costs.rename(columns=names)[[*PLACE, "batch_size", "loss", *names.values(), "n"]]
    sizes, panels = sorted(times["batch_size"].unique()), keys_of(times, PLACE)
    losses = loss_order(times["loss"], study)
    single = len(panels) == 1
    with styled():
        width = SINGLE + 0.6 if single else DOUBLE
        figure, grid = panel_grid(panels, min(len(panels), 3), (width, 2.4), 0.8)
        for axes, (dataset, setting) in grid:
            here = rows_of(times, dataset=dataset, setting=setting)
            by_batch_size(axes, sizes, loss_series(inputs, losses, here))
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter(_sparse_ticks)
            axes.set_ylabel("time in the loss (ms per step)")
            axes.set_title(panel_title((dataset, setting), not single), loc="left")
        legend_below(figure, columns=3 if single else 4)
    caption = (
        "Time inside the loss, forward and backward, per training step: mean over seeds, bars from "
        f"the fastest to the slowest seed. Logarithmic axis.{left_out(panels)}"
    )
    alt = (
        f"Points for {len(losses)} losses at batch sizes {', '.join(map(str, sizes))}: "
        f"{times['mean'].min():.2g} to {times['mean'].max():.2g} milliseconds per step."
    )
    return Drawing("Cost of the loss", caption, alt, figure, times)


def _sparse_ticks(value: float, position: int | None) -> str:
    """Return labels for 2 and 5 times a power of ten, for axes of less than a decade."""
    digit = f"{value:.0e}"[0]
    return f"{value:g}" if digit in "25" else ""
