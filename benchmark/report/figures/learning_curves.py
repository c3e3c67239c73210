"""Test score against epoch: does training still move at its end, and where do losses part?"""

from benchmark.report.drawing import DOUBLE, Drawing, legend_below, line, styled
from benchmark.report.figures import FIGURES
from benchmark.report.inputs import CONDITION, Inputs
from benchmark.report.labels import loss_label, loss_order, metric_label
from benchmark.report.panels import (
    keys_of,
    left_out,
    panel_grid,
    panel_title,
    rows_of,
    span,
)
from benchmark.report.table import NothingToShow


@FIGURES.register("learning_curves", display="Learning curves")
def build(inputs: Inputs) -> Drawing:
    """Return one panel per dataset and batch size: mean over seeds, band of one sd."""
    curves, study = inputs.some("curves"), inputs.study
    if curves["epoch"].nunique() < 2:
        raise NothingToShow(
            "every run was evaluated after one epoch only, so there is no curve to draw"
        )
    metric = metric_label(curves["metric"].iloc[0])
    panels = keys_of(curves, CONDITION)
    several = len({panel[:3] for panel in panels}) > 1
    losses = loss_order(curves["loss"], study)
    with styled():
        columns = min(len(panels), 3)
        figure, grid = panel_grid(panels, columns, (DOUBLE, 2.5), 0.5, sharey=not several)
        for axes, panel in grid:
            here = rows_of(curves, **dict(zip(CONDITION, panel, strict=True)))
            for loss in losses:
                curve = rows_of(here, loss=loss).sort_values("epoch")
                if curve.empty:
                    continue
                style = line(loss, inputs.base_losses.get(loss))
                mean, sd = 100 * curve["mean"], 100 * curve["sd"].fillna(0)
                band = {"color": style["color"], "alpha": 0.12, "linewidth": 0}
                axes.fill_between(curve["epoch"], mean - sd, mean + sd, **band)
                # About ten markers along a curve are enough.
                sparse = {"markersize": 3, "markevery": max(1, len(curve) // 10)}
                axes.plot(curve["epoch"], mean, label=loss_label(loss, study), **style, **sparse)
            axes.set_xlabel("epoch")
            axes.set_ylabel(f"{metric} (%)")
            axes.set_title(panel_title(panel[:3], several, f"batch size {panel[3]}"), loc="left")
            axes.xaxis.get_major_locator().set_params(integer=True, nbins="auto")
        legend_below(figure)
    caption = (
        f"Test {metric} after each evaluated epoch: mean over seeds, band of one standard "
        "deviation. The last epoch is the headline number; nothing is selected on these curves."
        f"{left_out(panels)}"
    )
    final = curves[curves["epoch"] == curves["epoch"].max()]["mean"]
    alt = (
        f"Curves of {metric} over {int(curves['epoch'].max())} epochs for {len(losses)} losses in "
        f"{len(grid)} panels; at the last epoch {span(final)} percent."
    )
    return Drawing("Learning curves", caption, alt, figure, curves)
