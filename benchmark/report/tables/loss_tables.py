"""Losses beside each other: scores, their spread, tests, ranks, equal budgets, and cost."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

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
    signed,
    whole,
)
from benchmark.report.answer_of_trials import of_heads
from benchmark.report.inputs import (
    CONDITION,
    DIVERGENCE_CELL,
    TIMING,
    WHERE,
    Inputs,
    records,
    rows_of,
)
from benchmark.report.labels import condition_label, dataset_label, metric_label
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
from benchmark.stats.budgets import RANK_INTERVAL
from benchmark.study.trials import AUTHORS

FEW = 4  # conditions of a small table
BESIDE = 6  # columns of scores by batch size, for sizes side by side
ACROSS = 7  # columns of scores that the page has room for
OVER = ["setting", "batch_size", "metric"]  # of ranks over datasets
Cell = tuple[Any, ...]  # dataset, setting of the columns, batch size, row
DRAWN = {"seeds": "seeds", "trials": "trials and folds", "both": "all of them"}
METRIC = words("Metric", lambda row: metric_label(row.metric))
OTHER_FAMILY = (
    "The answer uses the tests of the {family}. Holm's correction covers the tests of one table, "
    "so the same pair has another p here."
)
OF_TESTS = (
    "Two-sided paired t-test over common seeds, test score at the last epoch, with the spread that "
    "all pairs share (p_plain in stats/paired.csv: the pair's own). Differences, intervals and "
    "detectable differences are in percentage points; bold differences are significant after "
    "Holm's correction. The files have p without correction, and d_z, the unbiased effect size of "
    "the pair's own differences. Detectable: the smallest true difference that this many seeds "
    "would have shown with probability 0.8. The interval over classes, where there is one, says "
    "how much the difference depends on the classes that were tested. A loss that diverges where "
    "the other does not has lost, whatever "
    "its other runs score."
)


def named(inputs: Inputs, header: str = "Loss", column: str = "loss") -> Column:
    """Return the column with the name of a row's loss."""
    return words(header, lambda row: inputs.label(getattr(row, column)))


def ordered(table: pd.DataFrame, inputs: Inputs, *columns: str) -> Iterator[Any]:
    """Yield the rows of a table by these columns; losses and metrics come in the study's order."""
    keys = table[[*columns]].copy()
    for column in keys.columns.intersection(["metric", "loss", "against"]):
        listed = inputs.metrics if column == "metric" else inputs.losses
        order = {name: at for at, name in enumerate(listed(table[column].dropna()))}
        keys[column] = [order.get(name, -1) for name in table[column]]
    return records(table.loc[keys.sort_values([*columns], kind="stable").index])


def by_condition(table: pd.DataFrame, inputs: Inputs) -> Iterator[tuple[str, Any]]:
    """Yield (condition, row) of a table with a row per loss, or loss and metric, in study order."""
    columns = [name for name in (*CONDITION, "loss", "metric") if name in table]
    return ((condition_label(row), row) for row in ordered(table, inputs, *columns))


class LossRow(NamedTuple):
    """A loss, and the options of the recipe that it alone was run with: a row of a table."""

    loss: str
    options: tuple[str, ...]


class Heading(NamedTuple):
    """What a column of scores is of."""

    dataset: str
    setting: str
    split: str
    metric: str

    def column(self, *below: str) -> Column:
        """Return the column; ``below`` stands under the place."""
        where = dataset_label(self.dataset, self.setting, self.split)
        return Column((where, *below), parts=("mean", "sd", "n"))


class LastScores(NamedTuple):
    """Test scores of the losses after the last epoch, by batch size; ``seeds``: the most of one."""

    headings: list[Heading]
    by_size: dict[int, dict[LossRow, dict[Heading, TableCell]]]
    seeds: int


Budgets = Mapping[int, Any]  # results of a loss by number of trials
Place = tuple[int, Heading]  # batch size and heading of a column


def row_name(row: LossRow, inputs: Inputs) -> TableCell:
    """Return the first cell of a row: "SmoothAP", or "SmoothAP, dim512"."""
    return TableCell(", ".join([inputs.label(row.loss), *row.options]))


def side_by_side(
    inputs: Inputs, scores: LastScores, places: Sequence[Place]
) -> Iterator[tuple[LossRow, list[TableCell]]]:
    """Yield each row of any batch size with its cells at ``places``; a dash: it was not run."""
    rows_of_sizes = dict.fromkeys(row for rows in scores.by_size.values() for row in rows)
    losses = inputs.losses(row.loss for row in rows_of_sizes)
    for row in sorted(rows_of_sizes, key=lambda row: losses.index(row.loss)):
        cells = []
        for size, heading in places:
            cells.append(scores.by_size[size].get(row, {}).get(heading, TableCell(DASH)))
        yield row, cells


@TABLES.register("headline", display="Headline scores")
def headline(inputs: Inputs) -> Table:
    """Return the headline metric of the comparison, its sections beside each other, where few."""
    scores = last_scores(inputs)
    metric = metric_label(inputs.headline)
    places = [
        (size, heading)
        for size in scores.by_size
        for heading in scores.headings
        if heading.metric == inputs.headline
    ]
    if len(places) > FEW:
        raise NothingToShow(f"{count(len(places), 'condition')} are too many for one small table")
    tests = rows_of(inputs.paired, kind="baseline", metric=inputs.headline, significant=True)
    signs = {
        (test.batch_size, test.dataset, test.setting, test.split, test.loss): test.difference
        for test in records(tests)
    }
    lines = []
    for row, cells in side_by_side(inputs, scores, places):
        line = [row_name(row, inputs)]
        for (size, heading), cell in zip(places, cells, strict=True):
            difference = signs.get((size, *heading[:3], row.loss))
            if difference is not None and not row.options:
                arrow = "↑" if difference > 0 else "↓"
                cell = replace(cell, text=f"{cell.text} {arrow}")
            line.append(cell)
        lines.append(line)
    caption = (
        f"Test {metric} in percent at the last epoch, mean ± standard deviation over seeds. Bold: "
        "best; underlined: second. ↑, ↓: significantly above, below "
        f"{inputs.label(inputs.study.comparison.baseline)} after Holm's correction."
    )
    columns = [heading.column(f"batch of {size}") for size, heading in places]
    title = f"{metric} of the losses"
    return Table(title, caption, [text_column("", "Loss"), *columns], [Section("", lines)])


@TABLES.register("comparison", display="Comparison of the losses")
def comparison(inputs: Inputs) -> Table:
    """Return mean ± sd over seeds at the last epoch; runs without a number are named.

    Batch sizes stand side by side where they have room, else in a section each.
    """
    scores = last_scores(inputs)
    sizes = [*scores.by_size]
    if len(sizes) > 1 and len(sizes) * len(scores.headings) <= BESIDE:
        places = [(size, heading) for heading in scores.headings for size in sizes]
        columns = [
            heading.column(metric_label(heading.metric), f"batch of {size}")
            for size, heading in places
        ]
        lines = [
            [row_name(row, inputs), *cells] for row, cells in side_by_side(inputs, scores, places)
        ]
        sections = [Section("", lines)]
    else:
        columns = [heading.column(metric_label(heading.metric)) for heading in scores.headings]
        sections = []
        for size, rows in scores.by_size.items():
            lines = [[row_name(row, inputs), *cells.values()] for row, cells in rows.items()]
            sections.append(Section(f"Batch size {size}", lines))
    caption = "No finished run yet: each cell gives the state of its runs."
    if scores.seeds:
        caption = (
            "Test scores in percent at the last epoch, mean ± standard deviation over "
            f"n = {scores.seeds} seeds (other n is noted). Bold: best of the column at its batch "
            "size; underlined: second; a loss that diverges is neither."
        )
    heads = [text_column("", "Loss"), *columns]
    return Table("Comparison of the losses", caption, heads, sections, across=ACROSS)


def last_scores(inputs: Inputs) -> LastScores:
    """Return the cells of all scores after the last epoch; NothingToShow of an empty grid.

    An option of the recipe that one loss alone was run with ("dim512") is a row of its own:
    columns for it would be empty for all others.
    """
    runs = inputs.runs[[TIMING not in options for options in inputs.runs["options"]]]
    if runs.empty:
        raise NothingToShow("the grid of this study is empty: no run is recorded")
    columns = [*CONDITION, "loss", "metric", "mean", "sd", "n"]
    means = rows_of(inputs.summary, selection="last").reindex(columns=columns)
    moved = _moved(runs, means)
    # Marks follow the printed digits: what looks equal is marked equal.
    printed = means["mean"].astype(float).map(_in_print).mask(inputs.diverges(means))
    settings = [moved[place][0] for place in zip(means["dataset"], means["setting"], strict=True)]
    means = means.assign(column=settings)
    compared = [means[name] for name in ("dataset", "column", "split", "batch_size", "metric")]
    means = means.assign(mark=printed.groupby(compared).transform(marks))

    def cell_of(row: Any) -> Cell:
        setting, options = moved[row.dataset, row.setting]
        return row.dataset, setting, row.batch_size, LossRow(row.loss, options)

    states: dict[Cell, Counter[str]] = defaultdict(Counter)
    for run in records(runs):
        states[cell_of(run)][run.status] += 1
    scores = {(cell_of(row), row.split, row.metric): row for row in records(means)}
    measured = {(cell[0], cell[1], split) for cell, split, _ in scores}
    unmeasured = {cell[:2] for cell in states} - {where[:2] for where in measured}
    places = sorted(measured | {(*where, "test") for where in unmeasured})
    metrics = inputs.metrics(means["metric"]) or list(inputs.study.metrics)
    headings = [
        Heading(dataset, setting, split, metric)
        for dataset, setting, split in places
        for metric in metrics
    ]
    seeds = int(means["n"].max()) if len(means) else 0
    options_order = [(), *dict.fromkeys(runs["options"])]
    by_size: dict[int, dict[LossRow, dict[Heading, TableCell]]] = {}
    for size in sorted(runs["batch_size"].unique()):
        rows = {cell[3] for cell in states if cell[2] == size}
        losses = inputs.losses(row.loss for row in rows)
        ordered_rows = sorted(
            rows, key=lambda row: (losses.index(row.loss), options_order.index(row.options))
        )
        by_size[size] = {row: {} for row in ordered_rows}
        for row, cells in by_size[size].items():
            for heading in headings:
                cell = (heading.dataset, heading.setting, size, row)
                score = scores.get((cell, heading.split, heading.metric))
                cells[heading] = _score(score, states.get(cell), seeds)
    return LastScores(headings, by_size, seeds)


def _in_print(score: float) -> float:
    """Return a score as it is printed, in percent: pandas rounds halves another way."""
    return round(100 * score, 2)


def _moved(
    runs: pd.DataFrame, means: pd.DataFrame
) -> dict[tuple[str, str], tuple[str, tuple[str, ...]]]:
    """Return {(dataset, setting): (setting of its columns, options in the names of its rows)}.

    A setting moves to the backbone without options if one loss alone was run with them, several
    were run without them, and the same splits were measured there.
    """
    losses = runs.groupby(["dataset", "setting"])["loss"].nunique()
    splits = defaultdict(set)
    for dataset, setting, split in means[WHERE].itertuples(index=False):
        splits[dataset, setting].add(split)
    moved = {}
    for run in records(runs.drop_duplicates(["dataset", "setting"])):
        here = (run.dataset, run.setting)
        bare = (run.dataset, run.backbone)
        single = run.options and losses[here] == 1 and losses.get(bare, 0) > 1
        moves = single and splits[here] <= splits[bare]
        moved[here] = (run.backbone, run.options) if moves else (run.setting, ())
    return moved


def _score(row: Any, states: Mapping[str, int] | None, most: int) -> TableCell:
    """Return the cell of a row of ``summary``, or the states of runs without a score."""
    if states is None:
        return TableCell(DASH, tone="muted")
    lost = ", ".join(f"{number} {name}" for name, number in sorted(states.items()) if name != "ok")
    if row is not None:
        count = "" if row.n == most else f"n={row.n}"
        note = ", ".join(filter(None, (count, lost)))
        sd = row.sd if row.n > 1 else None
        return TableCell(mean_sd(row.mean, row.sd), row.mark, note, (row.mean, sd, row.n))
    if len(states) > 1:
        return TableCell(lost, tone="bad")
    state = next(iter(states))
    tone = "muted" if state in ("ok", "missing") else "bad"
    return TableCell(DASH if state == "ok" else state, tone=tone)


@TABLES.register("uncertainty", display="How sure the scores are")
def uncertainty(inputs: Inputs) -> Table:
    """Return per loss and metric the mean, both intervals, and the rate of divergence."""
    if inputs.divergence.empty or "selection" not in inputs.summary:
        raise NothingToShow("no run of this study has ended yet")
    last = inputs.summary[inputs.summary["selection"] == "last"].drop(columns="n_diverged")
    rows = inputs.divergence.merge(last, on=[*DIVERGENCE_CELL], how="left")
    rows["split"] = rows["split"].fillna("test")  # of losses that diverged under every seed

    def span(low: Any, high: Any, *_: Any) -> str:
        return interval(low, high, percent)

    def measured(column: Column, none: TableCell) -> Column:
        return replace(
            column, cell=lambda row: column.cell(row) if isinstance(row.metric, str) else none
        )

    def rate(row: Any) -> TableCell:
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
def best_epoch(inputs: Inputs) -> Table:
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
def noise(inputs: Inputs) -> Table:
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
        for row in records(inputs.some("noise"))
        if row.metric in inputs.study.metrics
    )
    return filled("Sources of noise", caption, columns, rows)


@TABLES.register("cost", display="Cost of training")
def cost(inputs: Inputs) -> Table:
    """Return training time, throughput, time in the loss and its share of a step, and memory."""

    def memory(row: Any) -> TableCell:
        gpu = finite(row.peak_gpu_mb)
        return number_cell(whole, gpu or row.peak_rss_mb, note="GPU" if gpu else "")

    def share(value: Any) -> str:
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


@TABLES.register("paired", display="Paired tests against the baseline")
def paired(inputs: Inputs) -> Table:
    """Return the tests of each loss against the study's baseline; positive means better."""
    baseline = inputs.label(inputs.tests("baseline")["against"].iloc[0])
    title = f"Paired tests against {baseline}"
    caption = f"Each loss minus {baseline}."
    return _pair_table(inputs, "baseline", title, caption, [named(inputs)])


@TABLES.register("all_pairs", display="Paired tests of all pairs")
def all_pairs(inputs: Inputs) -> Table:
    """Return the tests of all pairs of losses; positive means that the first is better."""
    columns = [named(inputs, "First"), named(inputs, "Second", "against")]
    outcomes = ("first higher", "second higher")
    caption = "First loss minus second."
    title = "Paired tests of all pairs"
    return _pair_table(inputs, "pairs", title, caption, columns, outcomes)


@TABLES.register("ablation", display="Ablation")
def ablation(inputs: Inputs) -> Table:
    """Return per batch size the steps of the study's ablation and their total, with their tests."""

    def step(row: Any) -> str:
        total = " (total)" if row.step == "total" else ""
        return f"{inputs.label(row.against)} → {inputs.label(row.loss)}{total}"

    columns = [
        words("Step", step),
        numbers("From", percent, mean="mean_against"),
        numbers("To", percent, mean="mean"),
    ]
    steps = " → ".join(map(inputs.label, inputs.study.comparison.ablation))
    caption = f"Steps {steps}. Means are in percent over the common seeds."
    return _pair_table(inputs, "ablation", "Ablation", caption, columns, ("gain", "loss"))


@TABLES.register("batch_sizes", display="Smallest and largest batch size")
def batch_sizes(inputs: Inputs) -> Table:
    """Return the test of each loss at its largest batch size against its smallest."""
    tests = inputs.some("batch_sizes")
    difference, span, outcome, _, p_holm, _, detectable, _ = test_columns(
        inputs, outcomes=("rises", "falls")
    )
    columns = [
        named(inputs),
        words("Batch size", lambda row: f"{row.against} → {row.batch_size}"),
        numbers("From", percent, mean="mean_against"),
        numbers("To", percent, mean="mean"),
        difference,
        span,
        outcome,
        p_holm,
        detectable,
        numbers("n", "{:.0f}, {:.0f}".format, n_against="n_against", n="n"),
    ]
    caption = (
        "Runs of two batch sizes share no batches, so they are not paired: Welch's two-sided "
        "t-test of the scores at the last epoch, each side with its own spread. Holm's correction "
        f"at level {inputs.study.comparison.alpha:g} covers the losses of one dataset, split and "
        "metric. Scores are in percent, differences in percentage points. n: runs of both sides. "
        "A loss that diverges at a batch size is compared without it."
    )
    known = tests[tests["metric"].isin(inputs.study.metrics)]
    rows = (
        (f"{metric_label(row.metric)} · {dataset_label(row.dataset, row.setting, row.split)}", row)
        for row in ordered(known, inputs, *WHERE, "metric", "loss")
    )
    return filled("Smallest and largest batch size", caption, columns, rows)


def _pair_table(
    inputs: Inputs,
    kind: str,
    title: str,
    caption: str,
    columns: Sequence[Column],
    outcomes: tuple[str, str] = ("higher", "lower"),
) -> Table:
    """Return the table of tests, a section per metric and condition; ``columns`` come first."""
    tests = inputs.tests(kind)
    known = tests[tests["metric"].isin(inputs.study.metrics)]
    by = ["dataset", "setting", "split", "metric", "batch_size", "loss", "against"]
    if "step" in known:  # an ablation keeps its order: "total" comes after all numbers
        by.insert(5, "step")
    rows = (
        (f"{metric_label(row.metric)} · {condition_label(row)}", row)
        for row in ordered(known, inputs, *by)
    )
    families = "; ".join(
        f"{row.family} ({int(finite(row.family_size) or 0)} tests)"
        for row in records(tests.drop_duplicates("family"))
    )
    over_classes = bool(tests["query_low"].notna().any())
    notes = [f"Holm families at level {inputs.study.comparison.alpha:g}: {families}."]
    answering = "baseline" if inputs.ablation.empty else "ablation"
    if kind != answering:
        notes.insert(0, OTHER_FAMILY.format(family=answering))
    return filled(
        title,
        f"{caption} {OF_TESTS}",
        [*columns, *test_columns(inputs, over_classes, outcomes)],
        rows,
        notes,
    )


def test_columns(
    inputs: Inputs, queries: bool = False, outcomes: tuple[str, str] = ("higher", "lower")
) -> list[Column]:
    """Return the columns of a test, a row of ``paired.csv``; the CSV has differences in [0, 1].

    ``outcomes`` say of a significant difference that it is above or below zero.
    """
    above = (outcomes[0], "good")
    below = (outcomes[1], "bad")

    def difference(row: Any) -> TableCell:
        return number_cell(points, row.difference, mark="best" if row.significant else "")

    def outcome(row: Any) -> TableCell:
        lost = getattr(row, "lost", "")
        if lost:
            word, tone = below if lost == row.loss else above
            return TableCell(f"{word}: divergence", tone=tone)
        if finite(row.p_holm) is None:
            return TableCell("no test", tone="muted")
        if not row.significant:
            return TableCell("not significant", tone="unsure")
        word, tone = above if row.difference > 0 else below
        return TableCell(word, tone=tone)

    def pairs(row: Any) -> TableCell:
        return number_cell(whole, row.n, note=row.note)

    sure = inputs.confidence
    over_classes = []
    if queries:
        head = f"{sure} over classes"
        over_classes.append(numbers(head, interval, low="query_low", high="query_high"))
    return [
        Column(("Difference",), parts=("difference",), cell=difference),
        numbers(f"{sure} interval", interval, low="ci_low", high="ci_high"),
        *over_classes,
        words("Outcome", outcome),
        replace(numbers("p", p_value, "p"), paged=False),
        numbers("p (Holm)", p_value, "p_holm"),
        replace(numbers("d_z", plain, "d_z"), paged=False),
        numbers("Detectable", lambda value: points(value).lstrip("+"), "detectable"),
        Column(("n",), parts=("",), cell=pairs),
    ]


@TABLES.register("ranks", display="Average ranks over datasets")
def ranks(inputs: Inputs) -> Table:
    """Return per setting, batch size and metric the losses from the best average rank on."""
    by_rank = inputs.some("ranks").sort_values("rank", kind="stable")
    by_rank["best"] = by_rank.groupby(OVER)["loss"].transform("first")
    tests = inputs.rank_tests.rename(columns={"loss": "best", "against": "loss"})
    compared = by_rank.merge(tests, on=[*OVER, "best", "loss"], how="left")

    def heading(row: Any) -> str:
        return (
            f"{metric_label(row.metric)} · {row.setting} · batch size {row.batch_size} · "
            f"{row.datasets} datasets · Friedman p = {p_value(row.p_friedman)} · critical "
            f"difference {plain(row.critical)}"
        )

    def of_test(column: Column) -> Column:
        none = TableCell("")
        return replace(column, cell=lambda row: none if row.loss == row.best else column.cell(row))

    def outcome(row: Any) -> TableCell:
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
    rows = ((heading(row), row) for row in ordered(compared, inputs, *OVER, "rank"))
    caption = (
        "Rank of each loss by its mean over seeds at the last epoch, 1 for the best, averaged over "
        "datasets; a dataset counts once, by the mean over its splits, and a loss that diverges "
        "ranks last. Friedman's test is whether any ranks differ (by permutation); the pairs are "
        "tested by Demšar's z test with Holm's correction over all pairs."
    )
    notes = [*filter(None, [of_heads(inputs.study)])]
    return filled("Average ranks over datasets", caption, columns, rows, notes)


def rule_words(trials: int) -> str:
    """Return "Authors", "1 trial" or "16 trials"."""
    return count(trials, "trial") if trials else AUTHORS.capitalize()


@TABLES.register("budgets", display="Losses at equal budgets", of_trials=True)
def budgets(inputs: Inputs) -> Table:
    """Return one row per loss: the score under each rule set, best after all trials first."""
    ranks = inputs.some("budget_ranks")
    budgets = sorted(ranks["trials"].unique())
    most = budgets[-1]
    metric = metric_label(inputs.headline)

    def score(budget: int) -> Column:
        def cell(results: Budgets) -> TableCell:
            result = results[budget]
            if not result.n:
                return TableCell("diverged", tone="bad")
            values = (result.mean, result.ci_low, result.ci_high)
            text = f"{percent(result.mean)} {interval(result.ci_low, result.ci_high, percent)}"
            return TableCell(text, result.mark, numbers=values)

        # the page has the figure of all rule sets beside the table
        ends = budget in (budgets[0], most)
        return Column((metric, rule_words(budget)), ("mean", "low", "high"), cell=cell, paged=ends)

    def rank(budget: int) -> Column:
        def cell(results: Budgets) -> TableCell:
            result = results[budget]
            text = f"{result.rank:.0f} [{result.rank_low:.0f}, {result.rank_high:.0f}]"
            return TableCell(text, numbers=(result.rank, result.rank_low, result.rank_high))

        return Column(("Rank [interval]", rule_words(budget)), ("rank", "low", "high"), cell=cell)

    def tested(header: str, parts: tuple[str, ...], cell: Callable[[Any], TableCell]) -> Column:
        def tested_cell(results: Budgets) -> TableCell:
            is_tested = pd.notna(results[most].significant)
            return cell(results[most]) if is_tested else TableCell(DASH, tone="muted")

        return Column((f"{rule_words(most)} − authors", header), parts, cell=tested_cell)

    def difference(test: Any) -> TableCell:
        mean = test.difference
        bounds = (test.ci_low_of_test, test.ci_high_of_test)
        tone = ""
        if test.significant:
            tone = "good" if mean > 0 else "bad"
        return TableCell(f"{points(mean)} {interval(*bounds)}", numbers=(mean, *bounds), tone=tone)

    def seconds(results: Budgets) -> TableCell:
        return number_cell(duration, results[most].seconds)

    def name(results: Budgets) -> TableCell:
        loss = results[most].loss
        label = inputs.label(loss)
        study = inputs.study
        if study.references.field and loss == study.comparison.baseline:
            return TableCell(f"{label} (the challenger)", mark="own")
        return TableCell(label)

    columns = [
        Column(("", "Loss"), numeric=False, cell=name),
        *map(score, budgets),
        rank(most),
        rank(budgets[0]),
        tested("Points", ("difference", "low", "high"), difference),
        tested("p (Holm)", ("p",), lambda test: number_cell(p_value, test.p_holm)),
        Column(("Time", f"of {rule_words(most)}"), ("seconds",), cell=seconds, paged=False),
    ]
    caption = (
        f"Test {metric} in percent with its {inputs.confidence} t interval over "
        f"{int(ranks['n'].max())} fresh seeds. “Authors”: as published. “k trials”: the "
        "best of the first k trials, chosen on training classes that were held out, never on the "
        f"test classes. Intervals of ranks: {RANK_INTERVAL}. Bold: best of the "
        "column; underlined: second. The CSV file has all numbers of trials, and the time."
    )
    notes = [
        f"The difference is tested seed by seed (paired t-test, Holm over the losses), at "
        f"{rule_words(most)}.",
        "A loss with more hyperparameters of its own spreads its trials over more options.",
        *filter(None, [of_heads(inputs.study)]),
    ]
    rows = _budget_rows(ranks, inputs.some("budget_gaps"), most)
    return filled("Losses at equal budgets", caption, columns, rows, notes)


def _budget_rows(
    ranks: pd.DataFrame, gaps: pd.DataFrame, most: int
) -> Iterator[tuple[str, Budgets]]:
    """Yield each loss with the heading of its condition, best after ``most`` trials first.

    A row of ``ranks`` gets its mark, and the test of ``gaps`` for its loss.
    """
    condition = ["dataset", "setting", "batch_size"]
    printed = ranks["mean"].map(_in_print).where(ranks["n"] > 0)
    compared = [ranks[name] for name in (*condition, "trials")]
    ranks = ranks.assign(mark=printed.groupby(compared).transform(marks))
    tests = rows_of(gaps, trials=most).drop(columns="trials")
    ranks = ranks.merge(tests, "left", [*condition, "loss"], suffixes=("", "_of_test"))
    for _, here in ranks.groupby(condition, sort=False):
        for last in records(rows_of(here, trials=most).sort_values("rank")):
            results = {row.trials: row for row in records(rows_of(here, loss=last.loss))}
            yield condition_label(last), results


@TABLES.register("budget_order", display="How sure the order is", of_trials=True)
def budget_order(inputs: Inputs) -> Table:
    """Return one row per rule set and kind of chance."""
    columns = [
        words("Rule set", lambda row: rule_words(row.trials)),
        words("Drawn again", lambda row: DRAWN[row.source]),
        numbers("Kendall's tau", plain, kendall="kendall"),
        numbers("Pairs in another order (%)", percent, flipped="flipped"),
        numbers("Same best loss (%)", percent, best_kept="best_kept"),
    ]
    rows = ((condition_label(row), row) for row in records(inputs.some("budget_order")))
    caption = (
        "The order of the losses compared with the one that 2,000 draws with replacement give. "
        "Kendall's tau: 1 is the same order, 0 no relation. Only chosen settings were run on the "
        "test classes: trials drawn again move a test score by as much as the best score on the "
        "held-out classes."
    )
    return filled("How sure the order is", caption, columns, rows)


@TABLES.register("budget_options", display="Which options mattered", of_trials=True)
def budget_options(inputs: Inputs) -> Table:
    """Return one row per loss and option, the most important option of each loss first."""
    shares = inputs.some("budget_options").sort_values("share", ascending=False, kind="stable")
    shares = shares.assign(named=~shares.duplicated(["dataset", "loss"]))
    rows = ((row.dataset, row) for row in ordered(shares, inputs, "dataset", "loss"))
    columns = [
        words("Loss", lambda row: inputs.label(row.loss) if row.named else ""),
        words("Option", lambda row: row.option.removeprefix("recipe.")),
        numbers("Share", lambda value: whole(100 * value), share="share"),
        numbers("rho", signed, rho="rho"),
        numbers("p", p_value, p="p"),
    ]
    caption = (
        "How much of the variance of the trials' ranks lies between low, middle and high values of "
        "an option, less what chance alone would put there (percent); Spearman's rho; p of Kruskal "
        "and Wallis, not corrected. A stand-in for functional ANOVA, which so few trials cannot "
        "carry: interactions are not seen."
    )
    return filled("Which options mattered", caption, columns, rows)
