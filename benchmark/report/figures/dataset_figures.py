"""Losses over several datasets: average ranks and performance profiles."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from benchmark.core.words import p_value
from benchmark.report.drawing import BAND, DOUBLE, FAINT, INK, Drawing, legend_below, styled
from benchmark.report.figures import FIGURES
from benchmark.report.figures.panels import loss_line, panel_grid
from benchmark.report.labels import metric_label
from benchmark.report.row_types import PairRow
from benchmark.report.study_results import StudyResults, records, rows_of
from benchmark.report.table import NothingToShow

OVER = ["setting", "batch_size", "metric"]  # of figures over datasets


def of_several_losses(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of places with several losses; raise NothingToShow if there are none."""
    several = table.groupby(OVER)["loss"].transform("nunique") > 1
    if not several.any():
        raise NothingToShow("no condition has several losses whose ranks could be compared")
    return table[several]


@FIGURES.register("critical_difference", display="Average ranks over datasets")
@styled()
def critical_difference(inputs: StudyResults) -> Drawing:
    """Return one panel per setting, batch size and metric; bars join losses that do not differ."""
    data = inputs.some("ranks")
    several = of_several_losses(data)
    metrics = inputs.metrics(several["metric"])
    size = (DOUBLE, 0.9 + 0.17 * (several["losses"].max() + 3))
    figure, panels, keys, rest = panel_grid(inputs, several, OVER, min(len(metrics), 3), size, 0.1)
    for axes, key, here in panels:
        setting, size, metric = key
        if here.empty:
            axes.remove()
            continue
        ranks = here.sort_values("rank", kind="stable")
        tests = rows_of(inputs.rank_tests, **dict(zip(OVER, key, strict=True)))
        draw_ranks(axes, ranks, tests, inputs)
        p = p_value(ranks["p_friedman"].iloc[0])
        title = [f"{setting} · batch size {size}"] * (len(keys) > len(metrics))
        axes.set_title("\n".join([*title, metric_label(metric), f"Friedman p {p}"]))
    first = several.iloc[0]
    caption = (
        f"Average rank of each loss over {first['datasets']} datasets, 1 for the best. A grey bar "
        "at the right joins losses whose ranks do not differ after Holm's correction over all "
        "pairs. The line at the top is Nemenyi's critical difference: with few datasets it can be "
        f"as long as the axis, and then nothing can be told apart.{rest}"
    )
    best = several.sort_values("rank", kind="stable").drop_duplicates("metric")
    winners = best.set_index("metric")["loss"].map(inputs.label)
    leaders = ", ".join(f"{winners[metric]} ({metric_label(metric)})" for metric in metrics)
    alt = f"Dot plot of average ranks of {first['losses']} losses; first: {leaders}."
    return Drawing(caption, alt, figure, data)


def draw_ranks(axes: Any, ranks: pd.DataFrame, tests: pd.DataFrame, inputs: StudyResults) -> None:
    """Draw ``ranks`` (rows of one place, best first), a row for each loss, with their ``tests``."""
    losses = list(ranks["loss"])
    most = int(ranks["losses"].iloc[0])
    critical = float(ranks["critical"].iloc[0])
    drawn = min(critical, most - 1)
    axes.plot([1, 1 + drawn], [-1, -1], "|-", color=INK, linewidth=1.2, markersize=5)
    whole = "" if critical <= most - 1 else ",\nlonger than the axis"
    axes.text(1, -1.3, f"critical difference{whole}", color=FAINT, va="bottom")
    for row, (loss, rank) in enumerate(zip(losses, ranks["rank"], strict=True)):
        axes.plot([rank], [row], **loss_line(inputs, loss, markersize=6, zorder=3, label=None))
    apart = {(test.loss, test.against) for test in records(tests, PairRow) if test.significant}
    joined = list(cliques(losses, apart))
    for number, (first, last) in enumerate(joined):
        at = most + 0.5 + 0.4 * number
        axes.plot([at, at], [first - 0.2, last + 0.2], color=BAND, linewidth=3)
    axes.set_yticks(range(len(losses)), [*map(inputs.label, losses)])
    axes.set(ylim=(len(losses) - 0.4, -3.1), xlim=(0.7, most + 0.5 + 0.4 * len(joined)))
    axes.set(xticks=range(1, most + 1), xlabel="average rank (1 = best)")


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


@FIGURES.register("performance_profiles", display="Performance profiles over datasets")
@styled()
def performance_profiles(inputs: StudyResults) -> Drawing:
    """Return one panel per setting, batch size and metric: the share of runs by score."""
    data = inputs.some("profiles")
    size = (DOUBLE, 2.2)
    several = of_several_losses(data)
    metrics = inputs.metrics(several["metric"])
    losses = inputs.losses(several["loss"])
    figure, panels, keys, rest = panel_grid(inputs, several, OVER, 3, size, 0.5, sharey=True)
    for axes, (setting, batch_size, metric), here in panels:
        for loss in inputs.losses(here["loss"]):
            curve = rows_of(here, loss=loss).sort_values("score")
            score, share, low, high = (100 * curve[n] for n in ("score", "share", "low", "high"))
            style = loss_line(inputs, loss, marker="")
            band = {"color": style["color"], "alpha": 0.1, "linewidth": 0}
            axes.fill_between(score, low, high, step="pre", **band)
            axes.step(score, share, where="pre", **style)
        title = [f"{setting} · batch size {batch_size}"] * (len(keys) > len(metrics))
        axes.set_title("\n".join([*title, metric_label(metric)]))
        axes.set(xlabel="score (% of the dataset's best mean)", ylim=(-2, 102))
        axes.xaxis.get_major_locator().set_params(nbins=4)
    panels[0][0].set_ylabel("runs that reach it (%)")
    legend_below(figure)
    datasets = int(several["datasets"].max())
    runs = int(several["runs"].max())
    caption = (
        f"Share of the runs of each loss ({runs} over {datasets} datasets) that reach a score, "
        "given as a share of the best mean of its dataset: further right and up is better. Bands "
        f"are {inputs.confidence} intervals over seeds drawn anew within each dataset, point by "
        f"point. A run that diverged reaches nothing.{rest}"
    )
    alt = f"Falling step curves of {len(losses)} losses over {datasets} datasets."
    return Drawing(caption, alt, figure, data)
