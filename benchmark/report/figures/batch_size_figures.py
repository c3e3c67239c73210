"""Scores and cost of the losses against the batch size."""

import textwrap

import pandas as pd

from benchmark.report.drawing import DOUBLE, FAINT, MOVED, SINGLE, Drawing, legend_below, styled
from benchmark.report.figures import FIGURES
from benchmark.report.figures.panels import (
    ENDS,
    WIDTHS,
    draw_losses,
    in_percent,
    panel_grid,
    panel_title,
    span,
)
from benchmark.report.labels import metric_label
from benchmark.report.study_results import WHERE, StudyResults, rows_of
from benchmark.report.table import NothingToShow

EQUAL = {"images": "equal images seen", "steps": "equal steps"}  # options of the recipe


@FIGURES.register("metric_by_batch_size", display="Scores against batch size")
@styled()
def metric_by_batch_size(inputs: StudyResults) -> Drawing:
    """Return one panel per dataset and metric; one batch size gives points without lines."""
    columns = [*WHERE, "batch_size", "loss", "metric", "mean", "sd", "n", *ENDS]
    data = inputs.last[columns].rename(columns=ENDS)
    several = data.groupby([*WHERE, "loss"])["batch_size"].transform("nunique") > 1
    means = data[several] if several.any() else data  # of losses with several batch sizes
    sizes = sorted(means["batch_size"].unique())
    by = [*WHERE, "metric"]
    losses = inputs.losses(means["loss"])
    metrics = inputs.metrics(means["metric"])
    across = WIDTHS.get(len(metrics), 3)
    size = (DOUBLE, 2.3)
    figure, panels, keys, rest = panel_grid(inputs, in_percent(means), by, across, size, 0.5)
    for axes, (*place, metric), here in panels:
        far = far_below(here)
        draw_losses(inputs, axes, sizes, here, [loss for loss in losses if loss not in far])
        # Intervals of two or three seeds reach beyond what a score can be; the axis does not.
        low, high = axes.get_ylim()
        title = panel_title(place, len(keys) > len(metrics), metric_label(metric))
        if far:
            low -= (high - low) / 4
            ends = {loss: span(rows_of(here, loss=loss)["mean"] / 100) for loss in far}
            words = ", ".join(f"{inputs.label(loss)} {ends[loss]}" for loss in far)
            text = f"not drawn:\n{textwrap.fill(words, 36)}"
            axes.text(0.02, 0.02, text, va="bottom", color=FAINT, transform=axes.transAxes)
        limits = (max(low, 0), min(high, 100))
        axes.set(ylim=limits, ylabel=f"{metric_label(metric)} (%)", title=title)
    legend_below(figure)
    caption = (
        f"Test score at the last epoch against batch size: mean over seeds with its "
        f"{inputs.confidence} t interval (none where a single seed finished). {MOVED} Losses far "
        f"below the others are not drawn, and named at the foot.{rest}"
    )
    if len(means) < len(data):
        caption += " Settings with one batch size are only in the CSV file."
    ranges = "; ".join(
        f"{metric_label(metric)} {span(rows_of(means, metric=metric)['mean'])} percent"
        for metric in metrics
    )
    alt = (
        f"Points with error bars for {len(losses)} losses at batch sizes "
        f"{', '.join(map(str, sizes))}: {ranges}."
    )
    return Drawing(caption, alt, figure, data)


def far_below(panel: pd.DataFrame) -> list[str]:
    """Return the lowest losses, at most a quarter, without which the axis is half as long."""
    order = panel.groupby("loss")["mean"].mean().sort_values().index
    means = panel["mean"]
    for number in range(1, len(order) // 4 + 1):
        near = means[~panel["loss"].isin(order[:number])]
        if 2 * (near.max() - near.min()) < means.max() - means.min():
            return [*order[:number]]
    return []


@FIGURES.register("whole_set", display="From small batches to the whole training set")
@styled()
def whole_set(inputs: StudyResults) -> Drawing:
    """Return a panel for each way to make batch sizes comparable; plain runs stand in both."""
    data = inputs.last[inputs.last["metric"] == inputs.headline].rename(columns=ENDS)
    options = inputs.runs.drop_duplicates("setting").set_index("setting")["options"]
    data = data.assign(equal=data["setting"].map(options.map(" ".join)))
    options_of = data.groupby("dataset")["equal"].agg(set)
    both = [dataset for dataset, used in options_of.items() if used >= {*EQUAL}]
    data = data[data["dataset"].isin(both)]
    if data.empty:
        raise NothingToShow("it compares runs under the options 'images' and 'steps'")
    columns = ["dataset", "split", "equal", "batch_size", "loss", "metric"]
    data = data[[*columns, "mean", "sd", "n", "low", "high"]]
    sizes = sorted(data["batch_size"].unique())
    losses = inputs.losses(data["loss"])
    shown = in_percent(
        pd.concat(data[data["equal"].isin(["", each])].assign(equal=each) for each in EQUAL)
    )
    by = ["dataset", "equal"]
    size = (DOUBLE, 2.6)
    figure, panels, keys, rest = panel_grid(inputs, shown, by, 2, size, 0.4, sharey=True)
    for axes, (dataset, equal), here in panels:
        draw_losses(inputs, axes, sizes, here, losses, width=0.2)
        title = panel_title((dataset,), len(keys) > len(EQUAL), EQUAL[equal])
        axes.set(ylabel=f"{metric_label(inputs.headline)} (%)", title=title)
    legend_below(figure)
    caption = (
        f"Test score after the last epoch against batch size: mean over seeds with its "
        f"{inputs.confidence} t interval. At equal images seen, larger batches make fewer steps; "
        "at equal steps, they see more images. Runs under neither option stand in "
        f"both panels.{rest}"
    )
    ranges = "; ".join(
        f"{inputs.label(loss)} {span(rows_of(data, loss=loss)['mean'])} percent" for loss in losses
    )
    alt = f"Points with error bars at batch sizes {', '.join(map(str, sizes))}: {ranges}."
    return Drawing(caption, alt, figure, data)


@FIGURES.register("loss_cost", display="Cost of the loss")
@styled()
def loss_cost(inputs: StudyResults) -> Drawing:
    """Return milliseconds per step against batch size; bars from least to greatest seed."""
    costs = inputs.costs
    place = ["dataset", "setting"]
    costs = costs if costs.empty else costs[costs["loss_ms"] > 0]
    if costs.empty:
        raise NothingToShow("no finished run has recorded the time inside its loss")
    names = {"loss_ms": "mean", "loss_ms_minimum": "low", "loss_ms_maximum": "high"}
    times = costs.rename(columns=names)[[*place, "batch_size", "loss", *names.values(), "n"]]
    sizes = sorted(times["batch_size"].unique())
    losses = inputs.losses(times["loss"])
    single = len(times.drop_duplicates(place)) == 1

    def sparse(value: float, position: int | None) -> str:
        """Label 2 and 5 times a power of ten, for axes of less than a decade."""
        return f"{value:g}" if f"{value:.0e}"[0] in "25" else ""

    size = (SINGLE + 0.6 if single else DOUBLE, 2.4)
    figure, panels, _, rest = panel_grid(inputs, times, place, 3, size, 0.8)
    for axes, where, here in panels:
        draw_losses(inputs, axes, sizes, here, losses)
        title = panel_title(where, not single)
        axes.set(yscale="log", ylabel="time in the loss (ms per step)", title=title)
        axes.yaxis.set(major_formatter="{x:g}", minor_formatter=sparse)
    legend_below(figure, columns=3 if single else 4)
    caption = (
        "Time inside the loss, forward and backward, per training step: mean over seeds, bars from "
        f"the fastest to the slowest seed. Logarithmic axis. {MOVED}{rest}"
    )
    alt = (
        f"Points for {len(losses)} losses at batch sizes {', '.join(map(str, sizes))}: "
        f"{times['mean'].min():.2g} to {times['mean'].max():.2g} milliseconds per step."
    )
    return Drawing(caption, alt, figure, times)
