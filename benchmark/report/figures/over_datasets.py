"""Losses over datasets: average ranks on one axis, and the share of runs that reach a score."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from benchmark.report.drawing import BAND, DOUBLE, FAINT, INK, Drawing, legend_below, line, styled
from benchmark.report.figures import FIGURES
from benchmark.report.inputs import Inputs, records
from benchmark.report.labels import confidence, loss_label, loss_order, metric_label, metric_order
from benchmark.report.numbers import p_value
from benchmark.report.pairs import is_true
from benchmark.report.panels import keys_of, left_out, panel_grid, rows_of

RANKS = "Average ranks over datasets"
PLACE = ["setting", "batch_size"]


@FIGURES.register("critical_difference", display=RANKS)
def critical_difference(inputs: Inputs) -> Drawing:
    """Return one panel per setting, batch size and metric; bars join losses that do not differ."""
    data, study = inputs.some("ranks"), inputs.study
    metrics = metric_order(data["metric"], study)
    panels = [(*place, metric) for place in keys_of(data, PLACE) for metric in metrics]
    columns = min(len(metrics), 3) if len(panels) > 1 else 1
    height = 0.9 + 0.17 * (int(data["losses"].max()) + 2)
    with styled():
        figure, grid = panel_grid(panels, columns, (DOUBLE, height), 0.1)
        for axes, (setting, size, metric) in grid:
            here = {"setting": setting, "batch_size": size, "metric": metric}
            ranks = rows_of(data, **here).sort_values("rank", kind="stable")
            if ranks.empty:
                axes.remove()
                continue
            names = {loss: loss_label(loss, study) for loss in ranks["loss"]}
            draw_ranks(axes, ranks, rows_of(inputs.rank_tests, **here), names, inputs.base_losses)
            p = p_value(ranks["p_friedman"].iloc[0])
            title = [f"{setting} · batch size {size}"] * (len(keys_of(data, PLACE)) > 1)
            axes.set_title("\n".join([*title, metric_label(metric), f"Friedman p {p}"]), loc="left")
    first = data.iloc[0]
    caption = (
        f"Average rank of each loss over {first['datasets']} datasets, 1 for the best. A grey bar "
        "at the right joins losses whose ranks do not differ after Holm's correction over all "
        "pairs. The line at the top is Nemenyi's critical difference: with few datasets it can be "
        f"as long as the axis, and then nothing can be told apart.{left_out(panels)}"
    )
    leaders = ", ".join(
        f"{loss_label(rows['loss'].iloc[0], study)} ({metric_label(metric)})"
        for metric in metrics
        if len(rows := rows_of(data, metric=metric).sort_values("rank"))
    )
    alt = f"Dot plot of average ranks of {first['losses']} losses; first: {leaders}."
    return Drawing(RANKS, caption, alt, figure, data)


def draw_ranks(
    axes: Any,
    ranks: pd.DataFrame,
    tests: pd.DataFrame,
    names: dict[str, str],
    bases: dict[str, str],
) -> None:
    """Draw ``ranks`` (rows of ranks.csv of one place, best first) with their ``tests``.

    A row for each loss with its name at the left; ``names`` are those to print, ``bases`` the
    registry names that give colours.
    """
    losses, most = list(ranks["loss"]), int(ranks["losses"].iloc[0])
    critical = min(float(ranks["critical"].iloc[0]), most - 1)
    axes.plot([1, 1 + critical], [-1, -1], "|-", color=INK, linewidth=1.2, markersize=5)
    whole = "" if ranks["critical"].iloc[0] <= most - 1 else ", longer than the axis"
    axes.text(1, -1.3, f"critical difference{whole}", color=FAINT, va="bottom")
    for row, (loss, rank) in enumerate(zip(losses, ranks["rank"], strict=True)):
        axes.plot([rank], [row], **line(loss, bases.get(loss)) | {"markersize": 6}, zorder=3)
    apart = {(t.loss, t.against) for t in records(tests) if is_true(t.significant)}
    joined = list(cliques(losses, apart))
    for number, (first, last) in enumerate(joined):
        at = most + 0.5 + 0.4 * number
        axes.plot([at, at], [first - 0.2, last + 0.2], color=BAND, linewidth=3)
    axes.set_yticks(range(len(losses)), [names[loss] for loss in losses])
    axes.set_ylim(len(losses) - 0.4, -2.1)
    axes.set_xlim(0.7, most + 0.5 + 0.4 * len(joined))
    axes.set_xticks(range(1, most + 1))
    axes.set_xlabel("average rank (1 = best)")


def cliques(losses: list[str], apart: set[tuple[str, str]]) -> Iterator[tuple[int, int]]:
    """Yield (first, last) of the longest stretches of ``losses``, by rank, that no test divides."""
    reach = -1
    for first in range(len(losses)):
        last = first
        while last + 1 < len(losses) and (losses[first], losses[last + 1]) not in apart:
            last += 1
        if last > max(first, reach):
            yield first, last
        reach = max(reach, last)


PROFILES = "Performance profiles over datasets"


@FIGURES.register("performance_profiles", display=PROFILES)
def performance_profiles(inputs: Inputs) -> Drawing:
    """Return one panel per setting, batch size and metric: the share of runs by score."""
    data, study = inputs.some("profiles"), inputs.study
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
    return Drawing(PROFILES, caption, alt, figure, data)
