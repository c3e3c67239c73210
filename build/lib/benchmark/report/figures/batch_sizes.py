"""Scores, the gain of an ablation's last step, and the time in the loss, against batch size."""

import itertools

from benchmark.report.drawing import (
    DOUBLE,
    INK,
    SERIES,
    SINGLE,
    Drawing,
    Series,
    by_batch_size,
    keys_of,
    left_out,
    legend_below,
    line,
    loss_series,
    panel_grid,
    panel_title,
    rows_of,
    span,
    styled,
)
from benchmark.report.figures import FIGURES
from benchmark.report.inputs import WHERE, Inputs, records
from benchmark.report.labels import (
    confidence,
    dataset_label,
    loss_label,
    loss_order,
    metric_label,
    metric_order,
)
from benchmark.report.table import NothingToShow

ENDS = {"ci_low": "low", "ci_high": "high"}
PERCENT = ["mean", "low", "high"]
SCORES = "Scores against batch size"
GAIN = "Relative gain of calibration"
WHOLE = "From small batches to the whole training set"
EQUAL = {"images": "equal images seen", "steps": "equal steps"}  # options of the recipe
COST = "Cost of the loss"


@FIGURES.register("metric_by_batch_size", display=SCORES)
def metric_by_batch_size(inputs: Inputs) -> Drawing:
    """Return one panel per dataset and metric; one batch size gives points without lines."""
    study = inputs.study
    columns = [*WHERE, "batch_size", "loss", "metric", "mean", "sd", "n", *ENDS]
    data = inputs.last[columns].rename(columns=ENDS)
    several = data.groupby([*WHERE, "loss"])["batch_size"].transform("nunique") > 1
    means = data[several] if several.any() else data  # of losses with several batch sizes
    sizes = sorted(means["batch_size"].unique())
    losses, metrics = loss_order(means["loss"], study), metric_order(means["metric"], study)
    places = keys_of(means, WHERE)
    panels = [(place, metric) for place in places for metric in metrics]
    percent = means.assign(**{name: 100 * means[name] for name in PERCENT})
    with styled():
        count = min(len(metrics) if len(metrics) > 1 else len(panels), 3)
        figure, grid = panel_grid(panels, count, (DOUBLE, 2.3), 0.5)
        for axes, (place, metric) in grid:
            here = rows_of(percent, metric=metric, **dict(zip(WHERE, place, strict=True)))
            by_batch_size(axes, sizes, loss_series(inputs, losses, here))
            # Intervals of two or three seeds reach beyond what a score can be; the axis does not.
            low, high = axes.get_ylim()
            axes.set_ylim(max(low, 0), min(high, 100))
            axes.set_ylabel(f"{metric_label(metric)} (%)")
            axes.set_title(panel_title(place, len(places) > 1, metric_label(metric)))
        legend_below(figure)
    caption = (
        f"Test score at the last epoch against batch size: mean over seeds with its "
        f"{confidence(study)} t interval (none where a single seed finished). Points are moved "
        f"sideways so that none covers another.{left_out(panels)}"
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
    return Drawing(SCORES, caption, alt, figure, data)


@FIGURES.register("calibration_gain", display=GAIN)
def calibration_gain(inputs: Inputs) -> Drawing:
    """Return a panel per dataset, a line per metric, as ROADMAP v2 prints it in figure 5."""
    gain, study = inputs.some("gain"), inputs.study
    metrics = metric_order(gain["metric"], study)[: len(SERIES)]
    gain = gain[gain["metric"].isin(metrics)]
    sizes, panels = sorted(gain["batch_size"].unique()), keys_of(gain, WHERE)
    loss, against = (loss_label(gain[column].iloc[0], study) for column in ("loss", "against"))
    points = gain.rename(columns={"gain": "mean", **ENDS})
    count = min(len(panels), 2)
    with styled():
        figure, grid = panel_grid(panels, count, (SINGLE * count, 2.3), 0.4)
        for axes, where in grid:
            here = rows_of(points, **dict(zip(WHERE, where, strict=True)))
            axes.axhline(0, color=INK, linewidth=0.7)
            series = [
                Series(metric_label(metric), line(style), rows_of(here, metric=metric))
                for metric, style in zip(metrics, SERIES, strict=False)
            ]
            by_batch_size(axes, sizes, series, width=0.3)
            axes.set_ylabel("relative gain (%)")
            axes.set_title(dataset_label(*where) if len(panels) > 1 else f"{loss} over {against}")
        legend_below(figure)
    caption = (
        f"Gain of {loss} over {against} in percent of the latter's score, mean over seeds with "
        f"its {confidence(study)} t interval. Above 0 the added term helps; an interval across 0 "
        f"leaves it open.{left_out(panels)}"
    )
    gains = "; ".join(
        f"{metric_label(row.metric)} {row.gain:+.1f} percent at batch size {row.batch_size}"
        for row in records(gain.sort_values(["metric", "batch_size"]).head(8))
    )
    alt = f"Relative gain of {loss} over {against} against batch size: {gains}."
    return Drawing(GAIN, caption, alt, figure, gain)


@FIGURES.register("whole_set", display=WHOLE)
def whole_set(inputs: Inputs) -> Drawing:
    """Return a panel for each way to make batch sizes comparable; plain runs stand in both."""
    study = inputs.study
    data = inputs.last[inputs.last["metric"] == inputs.headline].rename(columns=ENDS)
    options = inputs.runs.drop_duplicates("setting").set_index("setting")["options"]
    data = data.assign(equal=[" ".join(options[each]) for each in data["setting"]])
    data = data[data["dataset"].isin(data.loc[data["equal"].isin(EQUAL), "dataset"])]
    panels = [
        (dataset, equal)
        for dataset, equal in itertools.product(data["dataset"].unique(), EQUAL)
        if len(rows_of(data, dataset=dataset, equal=equal))
    ]
    if not panels:
        raise NothingToShow("it compares runs under the options 'images' and 'steps'")
    columns = ["dataset", "split", "equal", "batch_size", "loss", "metric"]
    data = data[[*columns, "mean", "sd", "n", "low", "high"]]
    percent = data.assign(**{name: 100 * data[name] for name in PERCENT})
    sizes, losses = sorted(data["batch_size"].unique()), loss_order(data["loss"], study)
    with styled():
        figure, grid = panel_grid(panels, 2, (DOUBLE, 2.6), 0.4, sharey=True)
        for axes, (dataset, equal) in grid:
            here = rows_of(percent, dataset=dataset)
            here = here[here["equal"].isin(["", equal])]
            by_batch_size(axes, sizes, loss_series(inputs, losses, here), width=0.2)
            axes.set_ylabel(f"{metric_label(inputs.headline)} (%)")
            axes.set_title(panel_title((dataset,), len(panels) > len(EQUAL), EQUAL[equal]))
        legend_below(figure)
    caption = (
        f"Test score after the last epoch against batch size: mean over seeds with its "
        f"{confidence(study)} t interval. At equal images seen, larger batches make fewer steps; "
        "at equal steps, they see more images. Runs under neither option stand in "
        f"both panels.{left_out(panels)}"
    )
    ranges = "; ".join(
        f"{loss_label(loss, study)} {span(rows_of(data, loss=loss)['mean'])} percent"
        for loss in losses
    )
    alt = f"Points with error bars at batch sizes {', '.join(map(str, sizes))}: {ranges}."
    return Drawing(WHOLE, caption, alt, figure, data)


@FIGURES.register("loss_cost", display=COST)
def loss_cost(inputs: Inputs) -> Drawing:
    """Return milliseconds per step against batch size; bars from least to greatest seed."""
    costs = inputs.costs if inputs.costs.empty else inputs.costs[inputs.costs["loss_ms"] > 0]
    if costs.empty:
        raise NothingToShow("no finished run has recorded the time inside its loss")
    names = {"loss_ms": "mean", "loss_ms_minimum": "low", "loss_ms_maximum": "high"}
    place = ["dataset", "setting"]
    times = costs.rename(columns=names)[[*place, "batch_size", "loss", *names.values(), "n"]]
    sizes, panels = sorted(times["batch_size"].unique()), keys_of(times, place)
    losses, single = loss_order(times["loss"], inputs.study), len(panels) == 1

    def sparse(value: float, position: int | None) -> str:
        """Label 2 and 5 times a power of ten, for axes of less than a decade."""
        return f"{value:g}" if f"{value:.0e}"[0] in "25" else ""

    with styled():
        width = SINGLE + 0.6 if single else DOUBLE
        figure, grid = panel_grid(panels, min(len(panels), 3), (width, 2.4), 0.8)
        for axes, (dataset, setting) in grid:
            here = rows_of(times, dataset=dataset, setting=setting)
            by_batch_size(axes, sizes, loss_series(inputs, losses, here))
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter(sparse)
            axes.set_ylabel("time in the loss (ms per step)")
            axes.set_title(panel_title((dataset, setting), not single))
        legend_below(figure, columns=3 if single else 4)
    caption = (
        "Time inside the loss, forward and backward, per training step: mean over seeds, bars from "
        f"the fastest to the slowest seed. Logarithmic axis.{left_out(panels)}"
    )
    alt = (
        f"Points for {len(losses)} losses at batch sizes {', '.join(map(str, sizes))}: "
        f"{times['mean'].min():.2g} to {times['mean'].max():.2g} milliseconds per step."
    )
    return Drawing(COST, caption, alt, figure, times)
