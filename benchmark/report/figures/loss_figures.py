"""Losses beside each other: by batch size, epoch, seed, dataset and number of trials."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from benchmark.core.words import p_value
from benchmark.losses.catalogue import load_catalogue
from benchmark.report.drawing import (
    BAND,
    DOUBLE,
    FAINT,
    INK,
    MOVED,
    SINGLE,
    Drawing,
    Series,
    bars,
    by_batch_size,
    dodge,
    legend_below,
    line,
    new_figure,
    row_axis,
    styled,
)
from benchmark.report.figures import FIGURES
from benchmark.report.inputs import CONDITION, WHERE, Inputs, records, rows_of
from benchmark.report.labels import dataset_label, metric_label
from benchmark.report.table import NothingToShow

PANELS = 6  # in one figure; more are left to the CSV, and the caption says so
ENDS = {"ci_low": "low", "ci_high": "high"}
EQUAL = {"images": "equal images seen", "steps": "equal steps"}  # options of the recipe
WIDTHS = {1: 3, 2: 2, 3: 3}  # panels in a row by number of metrics, for metrics in columns
OVER = ["setting", "batch_size", "metric"]  # of figures over datasets
KINDS = {"ranking": "ranking losses", "pair": "pairs and triplets", "proxy": "proxies"}
PLACE = ["dataset", "setting", "batch_size"]


def panel_keys(inputs: Inputs, table: pd.DataFrame, by: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the places of a table by these columns, in the order of their panels."""
    columns = [name for name in by if name != "metric"]
    keys = sorted(table[columns].drop_duplicates().itertuples(index=False, name=None))
    if "metric" in by:
        keys = [(*key, metric) for key in keys for metric in inputs.metrics(table["metric"])]
    return keys


def of_several_losses(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of places with several losses; raise NothingToShow if there are none."""
    several = table.groupby(OVER)["loss"].transform("nunique") > 1
    if not several.any():
        raise NothingToShow("no condition has several losses whose ranks could be compared")
    return table[several]


def panel_grid(
    inputs: Inputs,
    table: pd.DataFrame,
    by: Sequence[str],
    across: int,
    size: tuple[float, float],
    extra: float,
    **options: Any,
) -> tuple[Any, list[Any], list[tuple[Any, ...]], str]:
    """Return a figure; (axes, key, rows) of its panels; the keys of all; words on those left out.

    A panel is a place of ``table``: values of the columns ``by``, sorted; of "metric", the last,
    the study's in its order. ``across``: most panels of a row; ``size``: width of the figure and
    height of a row in inches; ``extra``: height of the legend.
    """
    keys = panel_keys(inputs, table, by)
    drawn = keys[:PANELS]
    rest = len(keys) - PANELS
    across = min(across, len(keys))
    rows = -(-len(drawn) // across)
    figure, grid = new_figure(size[0], size[1] * rows + extra, rows, across, **options)
    for axes in grid.flat[len(drawn) :]:
        axes.remove()
    panels = [
        (axes, key, rows_of(table, **dict(zip(by, key, strict=True))))
        for axes, key in zip(grid.flat, drawn, strict=False)
    ]
    left = f" {rest} further panels are only in the CSV file." if rest > 0 else ""
    return figure, panels, keys, left


def panel_title(where: Sequence[str], several: bool, *more: str) -> str:
    """Return a panel's title; ``where`` (dataset, setting, split) is named if there are several."""
    lines = []
    if several:
        place = dataset_label(*where).replace("~", " ~")  # a long setting breaks before its options
        lines += textwrap.wrap(place, 32, break_long_words=False)
    if more:
        lines.append(" · ".join(more))
    return "\n".join(lines)


def loss_line(inputs: Inputs, loss: str, **other: Any) -> dict[str, Any]:
    """Return how to draw a loss of a study: its name for the legend and its style, with others."""
    return {"label": inputs.label(loss), **line(loss, inputs.base_losses.get(loss)), **other}


def draw_losses(
    inputs: Inputs, axes: Any, sizes: Sequence[int], table: pd.DataFrame, losses: Iterable[str],
    width: float = 0.5,
) -> None:  # fmt: skip
    """Draw the rows of each loss over the batch sizes, in its style."""
    series = []
    for loss in losses:
        style = loss_line(inputs, loss)
        series.append(Series(style.pop("label"), style, rows_of(table, loss=loss)))
    by_batch_size(axes, sizes, series, width)


def in_percent(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with mean, low and high in percent."""
    return table.assign(**{name: 100 * table[name] for name in ("mean", "low", "high")})


def span(values: pd.Series) -> str:
    """Return "81.2 to 85.9" in percent, for alternative texts."""
    return f"{100 * values.min():.1f} to {100 * values.max():.1f}"


@FIGURES.register("metric_by_batch_size", display="Scores against batch size")
@styled()
def metric_by_batch_size(inputs: Inputs) -> Drawing:
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
def whole_set(inputs: Inputs) -> Drawing:
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
def loss_cost(inputs: Inputs) -> Drawing:
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


@FIGURES.register("learning_curves", display="Learning curves")
@styled()
def learning_curves(inputs: Inputs) -> Drawing:
    """Return one panel per dataset and batch size: mean over seeds, band of one sd."""
    curves = inputs.some("curves")
    rising = curves[curves.groupby([*CONDITION, "loss"])["epoch"].transform("nunique") > 1]
    if rising.empty:
        raise NothingToShow(
            "every run was evaluated after one epoch only, so there is no curve to draw"
        )
    metric = metric_label(rising["metric"].iloc[0])
    several = len(rising.drop_duplicates(WHERE)) > 1
    size = (DOUBLE, 2.5)
    losses = inputs.losses(rising["loss"])
    share = {"sharey": not several}
    figure, panels, _, rest = panel_grid(inputs, rising, CONDITION, 3, size, 0.5, **share)
    for axes, (*where, batch_size), here in panels:
        for loss in losses:
            curve = rows_of(here, loss=loss).sort_values("epoch")
            if curve.empty:
                continue
            # About ten markers along a curve are enough.
            every = max(1, len(curve) // 10)
            style = loss_line(inputs, loss, markersize=3, markevery=every)
            mean = 100 * curve["mean"]
            sd = 100 * curve["sd"].fillna(0)
            band = {"color": style["color"], "alpha": 0.12, "linewidth": 0}
            axes.fill_between(curve["epoch"], mean - sd, mean + sd, **band)
            axes.plot(curve["epoch"], mean, **style)
        title = panel_title(where, several, f"batch size {batch_size}")
        axes.set(xlabel="epoch", ylabel=f"{metric} (%)", title=title)
        axes.xaxis.get_major_locator().set_params(integer=True, nbins="auto")
    legend_below(figure)
    caption = (
        f"Test {metric} after each evaluated epoch: mean over seeds, band of one standard "
        "deviation. The last epoch is the headline number; nothing is selected on these curves."
        f"{rest}"
    )
    final = rising[rising["epoch"] == rising["epoch"].max()]["mean"]
    alt = (
        f"Curves of {metric} over {int(rising['epoch'].max())} epochs for {len(losses)} losses in "
        f"{len(panels)} panels; at the last epoch {span(final)} percent."
    )
    return Drawing(caption, alt, figure, curves)


@FIGURES.register("seed_differences", display="Differences to the baseline by seed")
@styled()
def seed_differences(inputs: Inputs) -> Drawing:
    """Return one panel per condition and metric: a small mark per seed, mean and interval above."""
    data = inputs.differences
    by = [*CONDITION, "metric"]
    name = inputs.label(inputs.study.comparison.baseline)
    if data.empty:
        raise NothingToShow(
            f"no seed has finished both for the baseline ({name}) and for another loss"
        )
    tests = inputs.tests("baseline").drop(columns="mean")
    tests = in_percent(tests.rename(columns={"difference": "mean", **ENDS}))
    across = WIDTHS.get(data["metric"].nunique(), 3)
    drawn = pd.DataFrame(panel_keys(inputs, data, by)[:PANELS], columns=by)
    losses = inputs.losses(data.merge(drawn)["loss"])
    several = len(data.drop_duplicates(WHERE)) > 1
    size = (DOUBLE, 0.6 + 0.3 * several + 0.2 * len(losses))
    figure, panels, _, rest = panel_grid(inputs, data, by, across, size, 0.2, sharey=True)
    for number, (axes, key, here) in enumerate(panels):
        *where, batch_size, metric = key
        tested = rows_of(tests, **dict(zip(by, key, strict=True)))
        axes.axvline(0, color=INK, linewidth=0.7)
        axes.grid(axis="y", visible=False)
        for row, loss in enumerate(losses):
            seeds = rows_of(here, loss=loss)
            test = rows_of(tested, loss=loss)
            if seeds.empty:
                beside = axes.get_yaxis_transform()
                words = {"color": FAINT, "va": "center", "transform": beside}
                # a box of the page's colour: the line at 0 may pass behind the words
                paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
                axes.text(0.02, row, "no pair", bbox=paper, **words)
                continue
            style = loss_line(inputs, loss, linestyle="none", label=None)
            small = {"color": style["color"], "markersize": 4, "alpha": 0.9}
            axes.plot(100 * seeds["difference"], [row + 0.17] * len(seeds), "|", **small)
            axes.errorbar(test["mean"], [row - 0.13], xerr=bars(test), **style)
        more = (f"batch size {batch_size}", metric_label(metric))
        axes.set_title(panel_title(where, several, *more))
        if number + across >= len(panels):
            axes.set_xlabel("difference (percentage points)")
    row_axis(panels[0][0], [*map(inputs.label, losses)])
    caption = (
        f"Difference to {name} for each seed (small marks: same data, initial weights, batches and "
        f"augmentation) and their mean with the {inputs.confidence} t interval (large mark and "
        "bar), with the spread that all pairs share. An interval across 0 is no evidence of a "
        f"difference; the tests with correction are in the table of paired tests.{rest}"
    )
    alt = (
        f"Dot plot of seed-wise differences to {name} for {len(losses)} losses; mean differences "
        f"from {tests['mean'].min():+.1f} to {tests['mean'].max():+.1f} percentage points."
    )
    return Drawing(caption, alt, figure, data)


@FIGURES.register("noise_sources", display="Sources of noise")
@styled()
def noise_sources(inputs: Inputs) -> Drawing:
    """Return one panel per condition and metric, a row per source."""
    data = inputs.some("noise")
    by = [*CONDITION, "metric"]
    metrics = inputs.metrics(data["metric"])
    losses = inputs.losses(data["loss"])
    sources = list(dict.fromkeys(data["source"]))
    legend = 0.3 * (len(losses) > 1)
    size = (DOUBLE, 1.7)
    share = {"sharey": True, "sharex": True}
    figure, panels, keys, rest = panel_grid(inputs, data, by, 3, size, legend, **share)
    for axes, (*where, _, metric), here in panels:
        for loss, offset in zip(losses, dodge(len(losses), 0.4), strict=True):
            rows = rows_of(here, loss=loss).set_index("source").reindex(sources)
            ends = 100 * rows[["low", "high"]].sub(rows["share"], axis=0).abs().T.to_numpy()
            at = [place + offset for place in range(len(sources))]
            style = loss_line(inputs, loss, linestyle="none")
            axes.errorbar(100 * rows["share"], at, xerr=ends, **style)
        title = panel_title(where, len(keys) > len(metrics), metric_label(metric))
        axes.set(xlim=(-3, 103), xlabel="share of the variance (%)", title=title)
        axes.grid(axis="y", visible=False)
    row_axis(panels[0][0], sources)
    if len(losses) > 1:
        legend_below(figure)
    caption = (
        f"Share of each source of chance in the variance of a run's score, with its "
        f"{inputs.confidence} interval, from {int(data['runs'].max())} runs of a Latin square. "
        f"Interaction is what a seed does only together with the others. {MOVED}{rest}"
    )
    first = rows_of(data, metric=metrics[0], loss=losses[0])
    shares = ", ".join(f"{row.source} {100 * row.share:.0f}%" for row in records(first))
    alt = f"Dots with intervals: shares of the variance of {metric_label(metrics[0])}: {shares}."
    return Drawing(caption, alt, figure, data)


@FIGURES.register("critical_difference", display="Average ranks over datasets")
@styled()
def critical_difference(inputs: Inputs) -> Drawing:
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


def draw_ranks(axes: Any, ranks: pd.DataFrame, tests: pd.DataFrame, inputs: Inputs) -> None:
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
    apart = {(test.loss, test.against) for test in records(tests) if test.significant}
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
def performance_profiles(inputs: Inputs) -> Drawing:
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


def _trial_panels(inputs: Inputs, table: pd.DataFrame, label: str, *, categories: bool) -> Any:
    """Return a row of panels per dataset, one for each kind of loss, and the scores by trials.

    The numbers of trials are ``categories`` with bars, or an axis with curves and bands.
    """
    kinds = {name: facts.kind for name, facts in load_catalogue().items()}
    kind_of = {
        loss: kinds.get(inputs.base_losses.get(loss, loss), "pair") for loss in table["loss"]
    }
    shown = [kind for kind in KINDS if kind in kind_of.values()]
    # A challenger has the colour of the text, which no loss of the field has.
    challenger = inputs.study.comparison.baseline if inputs.study.references.field else None
    places = in_percent(table.rename(columns=ENDS)).groupby(PLACE, sort=False)
    figure, grid = new_figure(DOUBLE, 3.6 * len(places), len(places), len(shown), sharey="row")
    for row, (place, here) in zip(grid, places, strict=True):
        trials = sorted(here["trials"].unique())
        for axes, kind in zip(row, shown, strict=True):
            losses = [loss for loss in inputs.losses(here["loss"]) if kind_of[loss] == kind]
            for loss, offset in zip(losses, dodge(len(losses), 0.4), strict=True):
                points = rows_of(here, loss=loss)
                style = loss_line(inputs, loss)
                if loss == challenger:
                    style |= {"color": INK, "markerfacecolor": INK, "markeredgecolor": INK}
                points = points.sort_values("trials")
                if not categories:
                    axes.plot(points["trials"], points["mean"], **style | {"marker": ""})
                    band = {"color": style["color"], "alpha": 0.12, "linewidth": 0}
                    axes.fill_between(points["trials"], points["low"], points["high"], **band)
                    continue
                chosen = points["trials"] > 0
                # no line leads from the published setting, which no trial chose
                for part, name in ((points[chosen], style.pop("label")), (points[~chosen], None)):
                    at = [trials.index(each) + offset for each in part["trials"]]
                    axes.errorbar(at, part["mean"], yerr=bars(part), **style, label=name)
            if categories:
                axes.set_xticks(range(len(trials)), [str(each) if each else "A" for each in trials])
                axes.grid(axis="x", visible=False)
            else:
                axes.set_xscale("log", base=2)
                ticks = [each for each in (1, 2, 4, 8, 16, 32, 64) if each <= max(trials)]
                axes.set_xticks(ticks, [str(each) for each in ticks])
            axes.set(title=KINDS[kind], xlabel="trials")
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22))
        row[0].set_ylabel(f"{dataset_label(str(place[0]))}\n{label}")
    return figure


@FIGURES.register(
    "expected_best", display="Expected best score against the number of trials", of_trials=True
)
@styled()
def expected_best(inputs: Inputs) -> Drawing:
    """Return a row of panels per dataset, one for each kind of loss."""
    curves = inputs.some("budget_curves")
    metric = metric_label(inputs.headline)
    if curves["trials"].max() < 2:
        raise NothingToShow("one trial makes no curve over the number of trials")
    figure = _trial_panels(inputs, curves, f"held-out {metric} (%)", categories=False)
    caption = (
        f"Expected best {metric} on held-out training classes of so many trials drawn without "
        f"replacement from those made, with a {inputs.confidence} bootstrap band over "
        "trials and folds. These scores chose the settings; they are no test scores."
    )
    losses = curves["loss"].nunique()
    most = curves["trials"].max()
    alt = f"Rising curves with bands for {losses} losses over 1 to {most} trials."
    return Drawing(caption, alt, figure, curves)


@FIGURES.register("score_by_budget", display="Scores against the budget of trials", of_trials=True)
@styled()
def score_by_budget(inputs: Inputs) -> Drawing:
    """Return a row of panels per dataset, one for each kind of loss."""
    ranks = inputs.some("budget_ranks")
    metric = metric_label(inputs.headline)
    figure = _trial_panels(inputs, ranks, f"test {metric} (%)", categories=True)
    caption = (
        f"Test {metric} of the setting that is best after so many trials: mean and "
        f"{inputs.confidence} t interval over fresh seeds. “A” is the setting as published, "
        "which no trial chose. Losses stand in three panels by what they compare, on one scale. "
        f"{MOVED}"
    )
    top = ranks[ranks["trials"] == ranks["trials"].max()].sort_values("mean").iloc[-1]
    alt = (
        f"Lines of {ranks['loss'].nunique()} losses over the number of trials; the best at the "
        f"largest budget reaches {100 * top['mean']:.1f} percent."
    )
    return Drawing(caption, alt, figure, ranks)
