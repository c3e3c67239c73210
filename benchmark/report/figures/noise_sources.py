"""The share of each source of chance in the variance of a run, with its interval."""

from benchmark.report.drawing import DOUBLE, Drawing, legend_below, line, styled
from benchmark.report.figures import FIGURES
from benchmark.report.inputs import CONDITION, Inputs, records
from benchmark.report.labels import confidence, loss_label, loss_order, metric_label, metric_order
from benchmark.report.panels import (
    dodge,
    keys_of,
    left_out,
    panel_grid,
    panel_title,
    rows_of,
)

TITLE = "Sources of noise"


@FIGURES.register("noise_sources", display=TITLE)
def build(inputs: Inputs) -> Drawing:
    """Return one panel per condition and metric, a row per source."""
    data, study = inputs.some("noise"), inputs.study
    metrics, losses = metric_order(data["metric"], study), loss_order(data["loss"], study)
    conditions, sources = keys_of(data, CONDITION), list(dict.fromkeys(data["source"]))
    panels = [(where, metric) for where in conditions for metric in metrics]
    with styled():
        columns, legend = min(len(panels), 3), 0.3 * (len(losses) > 1)
        figure, grid = panel_grid(panels, columns, (DOUBLE, 1.7), legend, sharey=True, sharex=True)
        for axes, (where, metric) in grid:
            here = rows_of(data, metric=metric, **dict(zip(CONDITION, where, strict=True)))
            for loss, offset in zip(losses, dodge(len(losses), 0.4), strict=True):
                rows = rows_of(here, loss=loss).set_index("source").reindex(sources)
                bars = 100 * rows[["low", "high"]].sub(rows["share"], axis=0).abs().T.to_numpy()
                axes.errorbar(
                    100 * rows["share"],
                    [at + offset for at in range(len(sources))],
                    xerr=bars,
                    label=loss_label(loss, study),
                    **line(loss, inputs.base_losses.get(loss)) | {"linestyle": "none"},
                )
            axes.set_title(
                panel_title(where[:3], len(conditions) > 1, metric_label(metric)), loc="left"
            )
            axes.set_xlim(-3, 103)
            axes.set_xlabel("share of the variance (%)")
            axes.grid(axis="y", visible=False)
        axes = grid[0][0]
        axes.set_yticks(range(len(sources)), sources)
        axes.set_ylim(len(sources) - 0.5, -0.5)
        if len(losses) > 1:
            legend_below(figure)
    runs = int(data["runs"].max())
    caption = (
        f"Share of each source of chance in the variance of a run's score, with its "
        f"{confidence(study)} interval, from {runs} runs of a Latin square. Interaction is what a "
        f"seed does only together with the others.{left_out(panels)}"
    )
    first = rows_of(data, metric=metrics[0], loss=losses[0])
    told = ", ".join(f"{row.source} {100 * row.share:.0f}%" for row in records(first))
    alt = f"Dots with intervals: shares of the variance of {metric_label(metrics[0])}: {told}."
    return Drawing(TITLE, caption, alt, figure, data)
