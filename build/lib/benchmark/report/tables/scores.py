"""The scores of the losses, how sure they are, where their spread comes from, and their cost."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from benchmark.report.inputs import CONDITION, DIVERGENCE_CELL, TIMING, WHERE, Inputs, records
from benchmark.report.labels import (
    DASH,
    condition_label,
    confidence,
    count,
    dataset_label,
    duration,
    finite,
    interval,
    is_true,
    loss_label,
    loss_order,
    mean_sd,
    metric_label,
    metric_order,
    percent,
    plain,
    points,
    whole,
)
from benchmark.report.table import (
    Column,
    NothingToShow,
    Section,
    Table,
    TableCell,
    filled,
    marks,
    number_cell,
    numbers,
    text_column,
    words,
)
from benchmark.report.tables import TABLES
from benchmark.study import Study

Options = tuple[str, ...]
COMPARISON = "Comparison of the losses"
UNCERTAINTY = "How sure the scores are"
EPOCHS = "Last epoch and best test epoch"
NOISE = "Sources of noise"
COST = "Cost of training"


@TABLES.register("comparison", display=COMPARISON)
def comparison(inputs: Inputs) -> Table:
    """Return mean ± sd over seeds at the last epoch; runs without a number are named.

    An option of the recipe that one loss alone was run with ("dim512") is a row of its own:
    columns for it would be empty for all others.
    """
    study, runs = inputs.study, inputs.runs
    runs = runs[[TIMING not in options for options in runs["options"]]]
    if runs.empty:
        raise NothingToShow("the grid of this study is empty: no run is recorded")
    try:
        means = inputs.last
    except NothingToShow:
        means = pd.DataFrame(columns=[*CONDITION, "loss", "metric", "n"])
    moved = _moved(runs, means)

    def cell_of(row: Any) -> tuple[Any, ...]:
        setting, options = moved[row.dataset, row.setting]
        return row.dataset, setting, row.batch_size, row.loss, options

    states: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    for run in records(runs):
        states[cell_of(run)][run.status] += 1
    scores = {(cell_of(row), row.split, row.metric): row for row in records(means)}
    measured = {(cell[0], cell[1], split) for cell, split, _ in scores}
    unmeasured = {cell[:2] for cell in states} - {where[:2] for where in measured}
    places = sorted(measured | {(*where, "test") for where in unmeasured})
    metrics = metric_order(means["metric"].unique(), study) or list(study.metrics)
    columns = [(*place, metric) for place in places for metric in metrics]
    most = int(means["n"].max()) if len(means) else 0
    options_order, lost = [(), *dict.fromkeys(runs["options"])], inputs.diverging
    sections = []
    for size in sorted(runs["batch_size"].unique()):
        labels = {cell[3:] for cell in states if cell[2] == size}
        losses = loss_order((loss for loss, _ in labels), study)
        rows = sorted(labels, key=lambda row: (losses.index(row[0]), options_order.index(row[1])))
        lines = [[TableCell(", ".join([loss_label(loss, study), *tags]))] for loss, tags in rows]
        for dataset, setting, split, metric in columns:
            cells = [(dataset, setting, size, *row) for row in rows]
            found = [scores.get((cell, split, metric)) for cell in cells]
            # Marks follow the printed digits: what looks equal is marked equal.
            marked = marks(
                [
                    None
                    if row is None or tuple(getattr(row, name) for name in DIVERGENCE_CELL) in lost
                    else round(row.mean, 4)
                    for row in found
                ]
            )
            for line, row, mark, cell in zip(lines, found, marked, cells, strict=True):
                line.append(_score(row, mark, states.get(cell), most))
        sections.append(Section(f"Batch size {size}", lines))
    caption = (
        "Test scores in percent at the last epoch, mean ± standard deviation over "
        f"n = {most} seeds (other n is noted). Bold: best of the section's column; "
        "underlined: second; a loss that diverges is neither."
        if most
        else "No finished run yet: each cell gives the state of its runs."
    )
    heads = [
        Column((dataset_label(*place), metric_label(metric)), parts=("mean", "sd", "n"))
        for *place, metric in columns
    ]
    return Table(COMPARISON, caption, [text_column("", "Loss"), *heads], sections)


def _moved(runs: pd.DataFrame, means: pd.DataFrame) -> dict[tuple[str, str], tuple[str, Options]]:
    """Return {(dataset, setting): (setting of its columns, options in the names of its rows)}.

    A setting moves to the backbone without options if one loss alone was run with them, several
    were run without them, and the same splits were measured there.
    """
    losses = runs.groupby(["dataset", "setting"])["loss"].nunique()
    splits = defaultdict(set)
    for dataset, setting, split in means[WHERE].itertuples(index=False):
        splits[dataset, setting].add(split)
    moved: dict[tuple[str, str], tuple[str, Options]] = {}
    for run in records(runs.drop_duplicates(["dataset", "setting"])):
        here, bare = (run.dataset, run.setting), (run.dataset, run.backbone)
        single = run.options and losses[here] == 1 and losses.get(bare, 0) > 1
        moves = single and splits[here] <= splits[bare]
        moved[here] = (run.backbone, run.options) if moves else (run.setting, ())
    return moved


def _score(row: Any, mark: str, states: Mapping[str, int] | None, most: int) -> TableCell:
    if states is None:
        return TableCell(DASH, tone="muted")
    lost = ", ".join(f"{number} {name}" for name, number in sorted(states.items()) if name != "ok")
    if row is not None:
        notes = [f"n={row.n}"] * (row.n != most) + [lost] * bool(lost)
        behind = (row.mean, row.sd if row.n > 1 else None, row.n)
        return TableCell(mean_sd(row.mean, row.sd), mark, ", ".join(notes), behind)
    if len(states) > 1:
        return TableCell(lost, tone="bad")
    (state,) = states
    tone = "muted" if state in ("ok", "missing") else "bad"
    return TableCell(DASH if state == "ok" else state, tone=tone)


def by_condition(table: pd.DataFrame, study: Study) -> Iterator[tuple[str, Any]]:
    """Yield (condition, row) of a table with a row per loss, or loss and metric, in study order."""
    losses = loss_order(table["loss"], study)
    order = table[[column for column in CONDITION if column in table]].assign(
        loss=table["loss"].map(losses.index)
    )
    if "metric" in table:
        known = metric_order(table["metric"].dropna(), study)
        order["metric"] = [known.index(each) if each in known else -1 for each in table["metric"]]
    for row in records(table.loc[order.sort_values([*order], kind="stable").index]):
        yield condition_label(row), row


@TABLES.register("uncertainty", display=UNCERTAINTY)
def uncertainty(inputs: Inputs) -> Table:
    """Return per loss and metric the mean, both intervals, and the rate of divergence."""
    rates, study = inputs.divergence, inputs.study
    if rates.empty or "selection" not in inputs.summary:
        raise NothingToShow("no run of this study has ended yet")
    last = inputs.summary[inputs.summary["selection"] == "last"].drop(columns="n_diverged")
    rows = rates.merge(last, on=[*DIVERGENCE_CELL], how="left")
    rows["split"] = rows["split"].fillna("test")  # of losses that diverged under every seed
    sure = confidence(study)

    def span(low: Any, high: Any, *_: Any) -> str:
        return interval(low, high, percent)

    def measured(header: str, form: Any, **parts: str) -> Column:
        column, none = numbers(header, form, **parts), TableCell(DASH)
        return replace(
            column, cell=lambda row: column.cell(row) if isinstance(row.metric, str) else none
        )

    def rate(row: Any) -> TableCell:
        behind = tuple(map(float, (row.n_diverged, row.n_ended, row.low, row.high)))
        bounds = f"{plain(100 * row.low, 0)} to {plain(100 * row.high, 0)}%"
        text = f"{int(row.n_diverged)} of {int(row.n_ended)} ({bounds})"
        return TableCell(text, numbers=behind, tone="bad" if is_true(row.diverges) else "")

    by_class = {"low": "query_low", "high": "query_high"}
    by_class |= {"classes": "classes", "queries": "queries"}
    columns = [
        words("Loss", lambda row: loss_label(row.loss, study)),
        words(
            "Metric",
            lambda row: (
                metric_label(row.metric)
                if isinstance(row.metric, str)
                else TableCell("no score", tone="bad")
            ),
        ),
        measured("Mean", percent, mean="mean"),
        measured(f"{sure} over seeds", span, low="ci_low", high="ci_high", n="n"),
        measured(f"{sure} over classes", span, **by_class),
        Column(("Runs that diverged",), parts=("runs", "of", "low", "high"), cell=rate),
    ]
    caption = (
        "Scores in percent at the last epoch. Over seeds: had the networks been trained again (t "
        "interval of the mean). Over classes: had other classes been tested with these networks "
        "(bootstrap that draws whole classes of queries). Neither contains the other. A dash: one "
        "seed, or runs from before the scores of queries were kept. Divergence: the rate with its "
        "exact interval (Clopper and Pearson 1934); a loss diverges where significantly more than "
        "one run of ten does, and then it loses its comparisons."
    )
    return filled(UNCERTAINTY, caption, columns, by_condition(rows, study))


@TABLES.register("best_epoch", display=EPOCHS)
def best_epoch(inputs: Inputs) -> Table:
    """Return per loss and metric the headline value, the best-epoch value and their difference."""
    study = inputs.study
    columns = [
        words("Loss", lambda row: loss_label(row.loss, study)),
        words("Metric", lambda row: metric_label(row.metric)),
        numbers("Last epoch (headline)", mean_sd, mean="last", sd="last_sd"),
        numbers("Best test epoch (selected on test)", mean_sd, mean="best", sd="best_sd"),
        numbers(
            "Difference",
            lambda value: points(value) if round(value, 4) else percent(value),
            mean="difference",
        ),
        numbers("Mean best epoch", lambda epoch: plain(epoch, 1), mean="epoch"),
        numbers("n", str, runs="n"),
    ]
    caption = (
        "Scores in percent, mean ± standard deviation over seeds. The best test epoch is chosen "
        "per metric on the test data itself, as the papers' code does; it is shown for comparison "
        "and never used for a headline number."
    )
    return filled(EPOCHS, caption, columns, by_condition(inputs.some("best_epoch"), study))


@TABLES.register("noise", display=NOISE)
def noise(inputs: Inputs) -> Table:
    """Return per loss and metric the spread and the share of each source."""
    data, study = inputs.some("noise"), inputs.study
    share = partial(percent, digits=0)
    columns = [
        words("Loss", lambda row: loss_label(row.loss, study)),
        words("Source", lambda row: row.source),
        numbers("Spread, points", percent, sd="sd"),
        numbers("Share of the variance", share, share="share"),
        numbers(
            f"{confidence(study)} interval", partial(interval, form=share), low="low", high="high"
        ),
    ]
    caption = (
        "Runs of a Latin square: each source of chance has seeds of its own, and every value of "
        "one meets every value of each other once. Spread: standard deviation that the source "
        "alone adds to the score of a run. Interaction: what a seed does only together with the "
        "others. Shares are in percent of the variance of a run; intervals are generalised ones "
        "(Weerahandi 1993), and wide, because a square has few values of each source."
    )
    rows = (
        (f"{metric_label(row.metric)} · {condition_label(row)} · {count(row.runs, 'run')}", row)
        for row in records(data)
        if row.metric in study.metrics
    )
    return filled(NOISE, caption, columns, rows)


@TABLES.register("cost", display=COST)
def cost(inputs: Inputs) -> Table:
    """Return training time, throughput, time in the loss and its share of a step, and memory."""
    costs, study = inputs.some("costs"), inputs.study

    def memory(row: Any) -> TableCell:
        gpu = finite(row.peak_gpu_mb)
        return number_cell(whole, gpu or row.peak_rss_mb, note="GPU" if gpu else "")

    def share(value: Any) -> str:
        return DASH if finite(value) is None else f"{100 * value:.1f} %"

    columns = [
        words("Loss", lambda row: loss_label(row.loss, study)),
        numbers("Training time", duration, seconds="train_seconds"),
        numbers("Images/s", whole, mean="images_per_second"),
        numbers("Loss, ms per step", plain, mean="loss_ms"),
        numbers("Loss, share of step", share, share="loss_share"),
        Column(("Peak memory, MB",), parts=("mean",), cell=memory),
        numbers("n", str, runs="n"),
    ]
    caption = (
        "Wall time of training without evaluation, throughput, and time inside the loss (forward "
        "and backward), means over seeds. The share is the loss's time divided by the time of a "
        "step (batch size / images per second). Memory is the host's, or the GPU's where marked. "
        "Times depend on the machine and its load; compare them within this table only."
    )
    return filled(COST, caption, columns, by_condition(costs, study))
