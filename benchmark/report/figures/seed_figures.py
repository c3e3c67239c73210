"""Scores by epoch and by seed, and where their spread comes from."""

import pandas as pd

from benchmark.report.drawing import (
    DOUBLE,
    FAINT,
    INK,
    MOVED,
    Drawing,
    bars,
    dodge,
    legend_below,
    row_axis,
    styled,
)
from benchmark.report.figures import FIGURES
from benchmark.report.figures.panels import (
    ENDS,
    PANELS,
    WIDTHS,
    in_percent,
    loss_line,
    panel_grid,
    panel_keys,
    panel_title,
    span,
)
from benchmark.report.labels import metric_label
from benchmark.report.row_types import NoiseRow
from benchmark.report.study_results import CONDITION, WHERE, StudyResults, records, rows_of
from benchmark.report.table import NothingToShow


@FIGURES.register("learning_curves", display="Learning curves")
@styled()
def learning_curves(inputs: StudyResults) -> Drawing:
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
def seed_differences(inputs: StudyResults) -> Drawing:
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
def noise_sources(inputs: StudyResults) -> Drawing:
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
    shares = ", ".join(f"{row.source} {100 * row.share:.0f}%" for row in records(first, NoiseRow))
    alt = f"Dots with intervals: shares of the variance of {metric_label(metrics[0])}: {shares}."
    return Drawing(caption, alt, figure, data)
