"""Losses beside each other: by epoch, seed, source of noise and reference, and over datasets."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from benchmark.papers.paper import cite
from benchmark.papers.verdicts import rule
from benchmark.report.drawing import (
    BAND,
    COLOURS,
    DOUBLE,
    FAINT,
    INK,
    Drawing,
    dodge,
    keys_of,
    left_out,
    legend_below,
    loss_line,
    new_figure,
    panel_grid,
    panel_title,
    rows_of,
    span,
    styled,
)
from benchmark.report.figures import FIGURES
from benchmark.report.inputs import CONDITION, Inputs, records
from benchmark.report.labels import (
    confidence,
    count,
    dataset_label,
    is_true,
    listed,
    loss_label,
    loss_order,
    metric_label,
    metric_order,
    p_value,
    words_of,
)
from benchmark.report.table import TONES, NothingToShow
from benchmark.study import Study

CURVES = "Learning curves"
SEEDS = "Differences to the baseline by seed"
WIDTHS = {1: 3, 2: 2, 3: 3}  # panels in a row by number of metrics, for metrics in columns
NOISE = "Sources of noise"
RANKS = "Average ranks over datasets"
PLACE = ["setting", "batch_size"]
PROFILES = "Performance profiles over datasets"
VERDICTS = "Differences to the references"
ROWS = 60  # that fit on one page
_MARKERS = {"drifted": "s", "inconclusive": "D", "reproduced": "o"}  # in the order of the rows


@FIGURES.register("learning_curves", display=CURVES)
def learning_curves(inputs: Inputs) -> Drawing:
    """Return one panel per dataset and batch size: mean over seeds, band of one sd."""
    curves = inputs.some("curves")
    if curves["epoch"].nunique() < 2:
        raise NothingToShow(
            "every run was evaluated after one epoch only, so there is no curve to draw"
        )
    metric = metric_label(curves["metric"].iloc[0])
    panels = keys_of(curves, CONDITION)
    several = len({panel[:3] for panel in panels}) > 1
    losses = loss_order(curves["loss"], inputs.study)
    with styled():
        columns = min(len(panels), 3)
        figure, grid = panel_grid(panels, columns, (DOUBLE, 2.5), 0.5, sharey=not several)
        for axes, panel in grid:
            here = rows_of(curves, **dict(zip(CONDITION, panel, strict=True)))
            for loss in losses:
                curve = rows_of(here, loss=loss).sort_values("epoch")
                if curve.empty:
                    continue
                # About ten markers along a curve are enough.
                every = max(1, len(curve) // 10)
                style = loss_line(inputs, loss, markersize=3, markevery=every)
                mean, sd = 100 * curve["mean"], 100 * curve["sd"].fillna(0)
                band = {"color": style["color"], "alpha": 0.12, "linewidth": 0}
                axes.fill_between(curve["epoch"], mean - sd, mean + sd, **band)
                axes.plot(curve["epoch"], mean, **style)
            axes.set_xlabel("epoch")
            axes.set_ylabel(f"{metric} (%)")
            axes.set_title(panel_title(panel[:3], several, f"batch size {panel[3]}"))
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
    return Drawing(CURVES, caption, alt, figure, curves)


@FIGURES.register("seed_differences", display=SEEDS)
def seed_differences(inputs: Inputs) -> Drawing:
    """Return one panel per condition and metric: a small mark per seed, mean and interval above."""
    data, study = inputs.differences, inputs.study
    name = loss_label(study.comparison.baseline, study)
    if data.empty:
        raise NothingToShow(
            f"no seed has finished both for the baseline ({name}) and for another loss"
        )
    tests = inputs.tests("baseline").rename(
        columns={"mean": "score", "difference": "mean", "ci_low": "low", "ci_high": "high"}
    )
    tests[["mean", "low", "high"]] *= 100
    conditions = keys_of(data, CONDITION)
    panels = [
        (where, metric) for where in conditions for metric in metric_order(data["metric"], study)
    ]
    columns = min(WIDTHS.get(data["metric"].nunique(), 3), len(panels))
    losses = loss_order(data["loss"], study)
    several = len({where[:3] for where in conditions}) > 1
    with styled():
        height = 0.6 + 0.2 * len(losses)
        figure, grid = panel_grid(panels, columns, (DOUBLE, height), 0.2, sharey=True)
        for number, (axes, (where, metric)) in enumerate(grid):
            here = {"metric": metric, **dict(zip(CONDITION, where, strict=True))}
            axes.axvline(0, color=INK, linewidth=0.7)
            axes.grid(axis="y", visible=False)
            for row, loss in enumerate(losses):
                seeds, test = rows_of(data, loss=loss, **here), rows_of(tests, loss=loss, **here)
                if seeds.empty:
                    across = axes.get_yaxis_transform()
                    axes.text(0.02, row, "no pair", color=FAINT, va="center", transform=across)
                    continue
                style = loss_line(inputs, loss, linestyle="none", label=None)
                small = {"color": style["color"], "markersize": 4, "alpha": 0.9}
                axes.plot(100 * seeds["difference"], [row + 0.17] * len(seeds), "|", **small)
                bars = [test["mean"] - test["low"], test["high"] - test["mean"]]
                bars = [bar.fillna(0) for bar in bars]
                axes.errorbar(test["mean"], [row - 0.13], xerr=bars, **style)
            title = panel_title(where[:3], several, f"batch size {where[3]}", metric_label(metric))
            axes.set_title(title)
            if number + columns >= len(grid):
                axes.set_xlabel("difference (percentage points)")
        axes = grid[0][0]
        axes.set_yticks(range(len(losses)), [loss_label(loss, study) for loss in losses])
        axes.set_ylim(len(losses) - 0.5, -0.5)
    caption = (
        f"Difference to {name} for each seed (small marks: same data, initial weights, batches and "
        f"augmentation) and their mean with the {confidence(study)} t interval (large mark and "
        "bar). An interval across 0 is no evidence of a difference; the tests with correction are "
        f"in the table of paired tests.{left_out(panels)}"
    )
    alt = (
        f"Dot plot of seed-wise differences to {name} for {len(losses)} losses; mean differences "
        f"from {tests['mean'].min():+.1f} to {tests['mean'].max():+.1f} percentage points."
    )
    return Drawing(SEEDS, caption, alt, figure, data)


@FIGURES.register("noise_sources", display=NOISE)
def noise_sources(inputs: Inputs) -> Drawing:
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
                at = [place + offset for place in range(len(sources))]
                style = loss_line(inputs, loss, linestyle="none")
                axes.errorbar(100 * rows["share"], at, xerr=bars, **style)
            axes.set_title(panel_title(where[:3], len(conditions) > 1, metric_label(metric)))
            axes.set_xlim(-3, 103)
            axes.set_xlabel("share of the variance (%)")
            axes.grid(axis="y", visible=False)
        axes = grid[0][0]
        axes.set_yticks(range(len(sources)), sources)
        axes.set_ylim(len(sources) - 0.5, -0.5)
        if len(losses) > 1:
            legend_below(figure)
    caption = (
        f"Share of each source of chance in the variance of a run's score, with its "
        f"{confidence(study)} interval, from {int(data['runs'].max())} runs of a Latin square. "
        f"Interaction is what a seed does only together with the others.{left_out(panels)}"
    )
    first = rows_of(data, metric=metrics[0], loss=losses[0])
    shares = ", ".join(f"{row.source} {100 * row.share:.0f}%" for row in records(first))
    alt = f"Dots with intervals: shares of the variance of {metric_label(metrics[0])}: {shares}."
    return Drawing(NOISE, caption, alt, figure, data)


@FIGURES.register("critical_difference", display=RANKS)
def critical_difference(inputs: Inputs) -> Drawing:
    """Return one panel per setting, batch size and metric; bars join losses that do not differ."""
    data, study = inputs.some("ranks"), inputs.study
    metrics, places = metric_order(data["metric"], study), keys_of(data, PLACE)
    panels = [(*place, metric) for place in places for metric in metrics]
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
            draw_ranks(axes, ranks, rows_of(inputs.rank_tests, **here), inputs)
            p = p_value(ranks["p_friedman"].iloc[0])
            title = [f"{setting} · batch size {size}"] * (len(places) > 1)
            axes.set_title("\n".join([*title, metric_label(metric), f"Friedman p {p}"]))
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


def draw_ranks(axes: Any, ranks: pd.DataFrame, tests: pd.DataFrame, inputs: Inputs) -> None:
    """Draw ``ranks`` (rows of one place, best first), a row for each loss, with their ``tests``."""
    losses, most = list(ranks["loss"]), int(ranks["losses"].iloc[0])
    critical = float(ranks["critical"].iloc[0])
    drawn = min(critical, most - 1)
    axes.plot([1, 1 + drawn], [-1, -1], "|-", color=INK, linewidth=1.2, markersize=5)
    whole = "" if critical <= most - 1 else ", longer than the axis"
    axes.text(1, -1.3, f"critical difference{whole}", color=FAINT, va="bottom")
    for row, (loss, rank) in enumerate(zip(losses, ranks["rank"], strict=True)):
        axes.plot([rank], [row], **loss_line(inputs, loss, markersize=6, zorder=3, label=None))
    apart = {(t.loss, t.against) for t in records(tests) if is_true(t.significant)}
    joined = list(cliques(losses, apart))
    for number, (first, last) in enumerate(joined):
        at = most + 0.5 + 0.4 * number
        axes.plot([at, at], [first - 0.2, last + 0.2], color=BAND, linewidth=3)
    axes.set_yticks(range(len(losses)), [loss_label(loss, inputs.study) for loss in losses])
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
                curve = (
                    100
                    * rows_of(here, loss=loss).sort_values("score")[
                        ["score", "share", "low", "high"]
                    ]
                )
                style = loss_line(inputs, loss, marker="")
                band = {"color": style["color"], "alpha": 0.1, "linewidth": 0}
                axes.fill_between(curve["score"], curve["low"], curve["high"], step="pre", **band)
                axes.step(curve["score"], curve["share"], where="pre", **style)
            title = [f"{setting} · batch size {size}"] * (len(places) > 1)
            axes.set_title("\n".join([*title, metric_label(metric)]))
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


@FIGURES.register("verdicts", display=VERDICTS)
def verdicts(inputs: Inputs) -> Drawing:
    """Return one row per judged reference number, drifted ones first; the band is the margin."""
    table = inputs.some("verdicts")
    judged = table[table["difference"].notna() & table["verdict"].isin([*_MARKERS])]
    if judged.empty:
        words = listed([words_of(word) for word in sorted(set(table["verdict"]))])
        raise NothingToShow(
            f"none of {count(len(table), 'reference number')} was measured (all are {words})"
        )
    judged = judged.sort_values(
        "verdict", key=lambda words: words.map([*_MARKERS].index), kind="stable", ignore_index=True
    )
    drawn = judged.head(ROWS)
    margins, rows = drawn["margin"].fillna(0), range(len(drawn))
    with styled():
        figure, grid = new_figure(DOUBLE, 0.9 + 0.17 * len(drawn))
        axes = grid[0, 0]
        band = {"height": 1, "color": BAND, "alpha": 0.22, "linewidth": 0, "zorder": 0}
        axes.barh(rows, 2 * margins, left=-margins, **band)
        axes.axvline(0, color=INK, linewidth=0.7)
        for word, marker in _MARKERS.items():
            part, colour = rows_of(drawn, verdict=word), COLOURS[TONES[word]]
            bars = [part["difference"] - part["ci_low"], part["ci_high"] - part["difference"]]
            bars = [side.fillna(0) for side in bars]
            style = {"fmt": marker, "color": colour, "label": word}
            style["markerfacecolor"] = "white" if word == "inconclusive" else colour
            if len(part):
                axes.errorbar(part["difference"], part.index, xerr=bars, **style)
        axes.set_yticks(rows, _names(drawn, inputs.study))
        axes.set_ylim(len(drawn) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("ours − reference (percentage points)")
        legend_below(figure)
    counts = table["verdict"].value_counts()
    counted = ", ".join(f"{number} {words_of(str(word))}" for word, number in counts.items())
    caption = (
        "Difference to each reference number with its interval; the grey band is the margin. The "
        f"rule is {rule(table['level'].min())}. References that were not run are not "
        f"drawn.{left_out(judged, ROWS, 'rows')}"
    )
    alt = f"Interval plot of {len(drawn)} differences to reference numbers: {counted}."
    return Drawing(VERDICTS, caption, alt, figure, judged)


def _names(drawn: pd.DataFrame, study: Study) -> Iterator[str]:
    """Yield the rows' names; dataset and table are named only where there are several."""
    several = {
        column: len(drawn[[column, "source"]].drop_duplicates()) > 1
        for column in ("dataset", "table")
    }
    for row in records(drawn):
        sized = [f"bs {row.batch_size:.0f}"] * (row.batch_size == row.batch_size)
        parts = [loss_label(row.loss, study), *sized, metric_label(row.metric)]
        if several["dataset"]:
            parts.append(dataset_label(row.dataset, split=row.split))
        if several["table"]:
            frozen = row.source == row.table
            parts.append(row.source if frozen else cite(row.source, row.table))
        yield " · ".join(parts)
