"""The share of runs that reach a score, over all datasets: a profile of each loss."""

from __future__ import annotations

from benchmark.report.drawing.drawing import Drawing, legend_below
from benchmark.report.drawing.panels import keys_of, left_out, panel_grid, rows_of
from benchmark.report.drawing.style import DOUBLE, line, styled
from benchmark.report.figures import FIGURES
from benchmark.report.figures.critical_difference import PLACE
from benchmark.report.inputs import Inputs
from benchmark.report.labels import confidence, loss_label, loss_order, metric_label, metric_order
from benchmark.report.render.table import NothingToShow
from benchmark.report.tables.ranks import FEW

TITLE = "Performance profiles over datasets"


@FIGURES.register("performance_profiles", display=TITLE)
def build(inputs: Inputs) -> Drawing:
    """Return one panel per setting, batch size and metric."""
    data, study = inputs.profiles, inputs.study
    if data.empty:
        raise NothingToShow(FEW)
    metrics, losses = metric_order(data["metric"], study), loss_order(data["loss"], study)
    places = keys_of(data, PLACE)
    panels = [(*place, metric) for place in places for metric in metrics]
    with styled():
        figure, grid = panel_grid(panels, min(len(panels), 3), (DOUBLE, 2.2), 0.5, sharey=True)
        for axes, (setting, size, metric) in grid:
            here = rows_of(data, setting=setting, batch_size=size, metric=metric)
            for loss in losses:
                curve = rows_of(here, loss=loss).sort_values("score")
                style = line(loss, inputs.base_losses.get(loss)) | {"marker": ""}
                ends = (100 * curve["score"], 100 * curve["low"], 100 * curve["high"])
                axes.fill_between(*ends, step="pre", color=style["color"], alpha=0.1, linewidth=0)
                axes.step(
                    100 * curve["score"],
                    100 * curve["share"],
                    where="pre",
                    label=loss_label(loss, study),
                    **style,
                )
            title = [f"{setting} · batch size {size}"] * (len(places) > 1)
            axes.set_title("\n".join([*title, metric_label(metric)]), loc="left")
            axes.set_xlabel("score (% of the dataset's best mean)")
            axes.set_ylim(-2, 102)
        grid[0][0].set_ylabel("runs that reach it (%)")
        legend_below(figure)
    datasets, runs = int(data["datasets"].max()), int(data["runs"].max())
    caption = (
        f"Share of the runs of each loss ({runs} over {datasets} datasets) that reach a score, "
        "given as a share of the best mean of its dataset: further right and up is better. Bands "
        f"are {confidence(study)} intervals over seeds drawn anew within each dataset, point by "
        f"point. A run that diverged reaches nothing.{left_out(panels)}"
    )
    alt = f"Falling step curves of {len(losses)} losses over {datasets} datasets."
    return Drawing(TITLE, caption, alt, figure, data)
