"""Scores from small batches to the whole training set, at equal images seen and at equal steps."""

from __future__ import annotations

import itertools

from benchmark.report.drawing.drawing import Drawing, legend_below
from benchmark.report.drawing.panels import (
    Series,
    by_batch_size,
    left_out,
    panel_grid,
    panel_title,
    rows_of,
    span,
)
from benchmark.report.drawing.style import DOUBLE, line, styled
from benchmark.report.figures import FIGURES
from benchmark.report.inputs import Inputs
from benchmark.report.labels import confidence, loss_label, loss_order, metric_label
from benchmark.report.render.table import NothingToShow

TITLE = "From small batches to the whole training set"
EQUAL = {"images": "equal images seen", "steps": "equal steps"}  # options of the recipe


@FIGURES.register("whole_set", display=TITLE)
def build(inputs: Inputs) -> Drawing:
    """Return a panel for each way to make batch sizes comparable; a line per loss.

    The plain runs, without either option, are the smallest batches of both.
    """
    study = inputs.study
    data = inputs.last[inputs.last["metric"] == inputs.headline].rename(
        columns={"ci_low": "low", "ci_high": "high"}
    )
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
    percent = data.assign(**{name: 100 * data[name] for name in ("mean", "low", "high")})
    sizes, losses = sorted(data["batch_size"].unique()), loss_order(data["loss"], study)
    with styled():
        figure, grid = panel_grid(panels, 2, (DOUBLE, 2.6), 0.4, sharey=True)
        for axes, (dataset, equal) in grid:
            here = rows_of(percent, dataset=dataset)
            here = here[here["equal"].isin(["", equal])]
            series = [
                Series(
                    loss_label(loss, study),
                    line(loss, inputs.base_losses.get(loss)),
                    rows_of(here, loss=loss),
                )
                for loss in losses
            ]
            by_batch_size(axes, sizes, series, width=0.2)
            axes.set_ylabel(f"{metric_label(inputs.headline)} (%)")
            title = panel_title((dataset,), len(panels) > len(EQUAL), EQUAL[equal])
            axes.set_title(title, loc="left")
        legend_below(figure)
    caption = (
        f"Test score after the last epoch against batch size: mean over seeds with its "
        f"{confidence(study)} t interval. At equal images seen, larger batches make fewer steps; "
        "at equal steps, they see more images. Runs under neither option stand in "
        f"both panels.{left_out(panels)}"
    )
    told = "; ".join(
        f"{loss_label(loss, study)} {span(rows_of(data, loss=loss)['mean'])} percent"
        for loss in losses
    )
    alt = f"Points with error bars at batch sizes {', '.join(map(str, sizes))}: {told}."
    return Drawing(TITLE, caption, alt, figure, data)
