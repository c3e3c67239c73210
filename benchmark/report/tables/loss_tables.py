"""Tables with a row for each loss: how sure scores are, ranks over datasets, and cost."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pandas as pd

from benchmark.core.words import (
    DASH,
    count,
    duration,
    finite,
    interval,
    mean_sd,
    p_value,
    percent,
    plain,
    points,
    whole,
)
from benchmark.report.answer_of_trials import of_heads
from benchmark.report.labels import condition_label, metric_label
from benchmark.report.row_types import AverageRankRow, CostRow, DivergenceRow, NoiseRow, Placed
from benchmark.report.study_results import CONDITION, DIVERGENCE_CELL, Row, StudyResults, records
from benchmark.report.table import (
    Column,
    NothingToShow,
    Table,
    TableCell,
    filled,
    number_cell,
    numbers,
    words,
)
from benchmark.report.tables import TABLES

OVER = ["setting", "batch_size", "metric"]  # of ranks over datasets
METRIC = words("Metric", lambda row: metric_label(row.metric))


def named(inputs: StudyResults, header: str = "Loss", column: str = "loss") -> Column:
    """Return the column with the name of a row's loss."""
    return words(header, lambda row: inputs.label(getattr(row, column)))


def ordered(
    table: pd.DataFrame, row: type[Row], inputs: StudyResults, *columns: str
) -> Iterator[Row]:
    """Yield the rows of a table by these columns; losses and metrics come in the study's order."""
    keys = table[[*columns]].copy()
    for column in keys.columns.intersection(["metric", "loss", "against"]):
        listed = inputs.metrics if column == "metric" else inputs.losses
        order = {name: at for at, name in enumerate(listed(table[column].dropna()))}
        keys[column] = [order.get(name, -1) for name in table[column]]
    return records(table.loc[keys.sort_values([*columns], kind="stable").index], row)


def by_condition(table: pd.DataFrame, inputs: StudyResults) -> Iterator[tuple[str, Placed]]:
    """Yield (condition, row) of a table with a row per loss, or loss and metric, in study order."""
    columns = [name for name in (*CONDITION, "loss", "metric") if name in table]
    return ((condition_label(row), row) for row in ordered(table, Placed, inputs, *columns))


def as_printed(score: float) -> float:
    """Return a score as it is printed, in percent: pandas rounds halves another way."""
    return round(100 * score, 2)


@TABLES.register("uncertainty", display="How sure the scores are")
def uncertainty(inputs: StudyResults) -> Table:
    """Return per loss and metric the mean, both intervals, and the rate of divergence."""
    if inputs.divergence.empty or "selection" not in inputs.summary:
        raise NothingToShow("no run of this study has ended yet")
    last = inputs.summary[inputs.summary["selection"] == "last"].drop(columns="n_diverged")
    rows = inputs.divergence.merge(last, on=[*DIVERGENCE_CELL], how="left")
    rows["split"] = rows["split"].fillna("test")  # of losses that diverged under every seed

    def span(low: float, high: float, *_: float) -> str:
        return interval(low, high, percent)

    def measured(column: Column, none: TableCell) -> Column:
        return replace(
            column, cell=lambda row: column.cell(row) if isinstance(row.metric, str) else none
        )

    def rate(row: DivergenceRow) -> TableCell:
        behind = tuple(map(float, (row.n_diverged, row.n_ended, row.low, row.high)))
        bounds = f"{plain(100 * row.low, 0)} to {plain(100 * row.high, 0)}%"
        text = f"{int(row.n_diverged)} of {int(row.n_ended)} ({bounds})"
        return TableCell(text, numbers=behind, tone="bad" if row.diverges else "")

    by_seed = f"{inputs.confidence} over seeds"
    by_class = f"{inputs.confidence} over classes"
    parts = {"low": "query_low", "high": "query_high", "classes": "classes", "queries": "queries"}
    scored = (
        numbers("Mean", percent, mean="mean"),
        numbers(by_seed, span, low="ci_low", high="ci_high", n="n"),
        numbers(by_class, span, **parts),
    )
    columns = [
        named(inputs),
        measured(METRIC, TableCell("no score", tone="bad")),
        *(measured(column, TableCell(DASH)) for column in scored),
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
    return filled("How sure the scores are", caption, columns, by_condition(rows, inputs))


@TABLES.register("best_epoch", display="Last epoch and best test epoch")
def best_epoch(inputs: StudyResults) -> Table:
    """Return per loss and metric the headline value, the best-epoch value and their difference."""

    def difference(value: float) -> str:
        return points(value) if round(value, 4) else percent(value)

    columns = [
        named(inputs),
        METRIC,
        numbers("Last epoch (headline)", mean_sd, mean="last", sd="last_sd"),
        numbers("Best test epoch (selected on test)", mean_sd, mean="best", sd="best_sd"),
        numbers("Difference", difference, mean="difference"),
        numbers("Mean best epoch", lambda epoch: plain(epoch, 1), mean="epoch"),
        numbers("n", str, runs="n"),
    ]
    caption = (
        "Scores in percent, mean ± standard deviation over seeds. The best test epoch is chosen "
        "per metric on the test data itself, as the papers' code does; it is shown for comparison "
        "and never used for a headline number."
    )
    table = inputs.some("best_epoch")
    if not table["difference"].round(6).any():
        raise NothingToShow("the last epoch was the best of every run, in every metric")
    rows = by_condition(table, inputs)
    return filled("Last epoch and best test epoch", caption, columns, rows)


@TABLES.register("noise", display="Sources of noise")
def noise(inputs: StudyResults) -> Table:
    """Return per loss and metric the spread and the share of each source."""
    share = partial(percent, digits=0)
    span = partial(interval, form=share)
    columns = [
        named(inputs),
        words("Source", lambda row: row.source),
        numbers("Spread, points", percent, sd="sd"),
        numbers("Share of the variance", share, share="share"),
        numbers(f"{inputs.confidence} interval", span, low="low", high="high"),
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
        for row in records(inputs.some("noise"), NoiseRow)
        if row.metric in inputs.study.metrics
    )
    return filled("Sources of noise", caption, columns, rows)


@TABLES.register("cost", display="Cost of training")
def cost(inputs: StudyResults) -> Table:
    """Return training time, throughput, time in the loss and its share of a step, and memory."""

    def memory(row: CostRow) -> TableCell:
        gpu = finite(row.peak_gpu_mb)
        return number_cell(whole, gpu or row.peak_rss_mb, note="GPU" if gpu else "")

    def share(value: float) -> str:
        return DASH if finite(value) is None else f"{100 * value:.1f} %"

    columns = [
        named(inputs),
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
    rows = by_condition(inputs.some("costs"), inputs)
    return filled("Cost of training", caption, columns, rows)


@TABLES.register("ranks", display="Average ranks over datasets")
def ranks(inputs: StudyResults) -> Table:
    """Return per setting, batch size and metric the losses from the best average rank on."""
    by_rank = inputs.some("ranks").sort_values("rank", kind="stable")
    by_rank["best"] = by_rank.groupby(OVER)["loss"].transform("first")
    tests = inputs.rank_tests.rename(columns={"loss": "best", "against": "loss"})
    compared = by_rank.merge(tests, on=[*OVER, "best", "loss"], how="left")

    def heading(row: AverageRankRow) -> str:
        return (
            f"{metric_label(row.metric)} · {row.setting} · batch size {row.batch_size} · "
            f"{row.datasets} datasets · Friedman p = {p_value(row.p_friedman)} · critical "
            f"difference {plain(row.critical)}"
        )

    def of_test(column: Column) -> Column:
        none = TableCell("")
        return replace(column, cell=lambda row: none if row.loss == row.best else column.cell(row))

    def outcome(row: AverageRankRow) -> TableCell:
        if row.loss == row.best:
            return TableCell("best")
        if row.significant:
            return TableCell("behind", tone="bad")
        return TableCell("not told apart", tone="unsure")

    columns = [
        named(inputs),
        numbers("Average rank", plain, rank="rank"),
        of_test(numbers("Behind the best by", plain, difference="difference")),
        of_test(numbers("p (Holm)", p_value, "p_holm")),
        words("Outcome", outcome),
    ]
    rows = ((heading(row), row) for row in ordered(compared, AverageRankRow, inputs, *OVER, "rank"))
    caption = (
        "Rank of each loss by its mean over seeds at the last epoch, 1 for the best, averaged over "
        "datasets; a dataset counts once, by the mean over its splits, and a loss that diverges "
        "ranks last. Friedman's test is whether any ranks differ (by permutation); the pairs are "
        "tested by Demšar's z test with Holm's correction over all pairs."
    )
    notes = [*filter(None, [of_heads(inputs.study)])]
    return filled("Average ranks over datasets", caption, columns, rows, notes)
