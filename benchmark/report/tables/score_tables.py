"""Test scores of the losses beside each other: the headline, and all of them."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pandas as pd

from benchmark.core.words import DASH, count, mean_sd
from benchmark.report.labels import dataset_label, metric_label
from benchmark.report.row_types import PairRow, Placed, RunRow, ScoreRow
from benchmark.report.study_results import CONDITION, TIMING, WHERE, StudyResults, records, rows_of
from benchmark.report.table import (
    Column,
    NothingToShow,
    Section,
    Table,
    TableCell,
    marks,
    text_column,
)
from benchmark.report.tables import TABLES
from benchmark.report.tables.loss_tables import as_printed

FEW = 4  # conditions of a small table
BESIDE = 6  # columns of scores by batch size, for sizes side by side
ACROSS = 7  # columns of scores that the page has room for


class LossRow(NamedTuple):
    """A loss, and the options of the recipe that it alone was run with: a row of a table."""

    loss: str
    options: tuple[str, ...]


class RunsOfRow(NamedTuple):
    """The runs of a row at one batch size; ``setting``: that of their columns."""

    dataset: str
    setting: str
    batch_size: int
    row: LossRow


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


Place = tuple[int, Heading]  # batch size and heading of a column


class LastScores(NamedTuple):
    """Test scores of the losses after the last epoch, by batch size; ``seeds``: the most of one."""

    headings: list[Heading]
    by_size: dict[int, dict[LossRow, dict[Heading, TableCell]]]
    seeds: int


def row_name(row: LossRow, inputs: StudyResults) -> TableCell:
    """Return the first cell of a row: "SmoothAP", or "SmoothAP, dim512"."""
    return TableCell(", ".join([inputs.label(row.loss), *row.options]))


def side_by_side(
    inputs: StudyResults, scores: LastScores, places: Sequence[Place]
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
def headline(inputs: StudyResults) -> Table:
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
        for test in records(tests, PairRow)
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
def comparison(inputs: StudyResults) -> Table:
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


def last_scores(inputs: StudyResults) -> LastScores:
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
    printed = means["mean"].astype(float).map(as_printed).mask(inputs.diverges(means))
    settings = [moved[place][0] for place in zip(means["dataset"], means["setting"], strict=True)]
    means = means.assign(column=settings)
    compared = [means[name] for name in ("dataset", "column", "split", "batch_size", "metric")]
    means = means.assign(mark=printed.groupby(compared).transform(marks))

    def cell_of(row: Placed) -> RunsOfRow:
        setting, options = moved[row.dataset, row.setting]
        return RunsOfRow(row.dataset, setting, row.batch_size, LossRow(row.loss, options))

    states: dict[RunsOfRow, Counter[str]] = defaultdict(Counter)
    for run in records(runs, RunRow):
        states[cell_of(run)][run.status] += 1
    scores = {(cell_of(row), row.split, row.metric): row for row in records(means, ScoreRow)}
    measured = {(cell.dataset, cell.setting, split) for cell, split, _ in scores}
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
        rows = {cell.row for cell in states if cell.batch_size == size}
        losses = inputs.losses(row.loss for row in rows)
        ordered_rows = sorted(
            rows, key=lambda row: (losses.index(row.loss), options_order.index(row.options))
        )
        by_size[size] = {row: {} for row in ordered_rows}
        for row, cells in by_size[size].items():
            for heading in headings:
                cell = RunsOfRow(heading.dataset, heading.setting, size, row)
                score = scores.get((cell, heading.split, heading.metric))
                cells[heading] = _score(score, states.get(cell), seeds)
    return LastScores(headings, by_size, seeds)


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
    for run in records(runs.drop_duplicates(["dataset", "setting"]), RunRow):
        here = (run.dataset, run.setting)
        bare = (run.dataset, run.backbone)
        single = run.options and losses[here] == 1 and losses.get(bare, 0) > 1
        moves = single and splits[here] <= splits[bare]
        moved[here] = (run.backbone, run.options) if moves else (run.setting, ())
    return moved


def _score(row: ScoreRow | None, states: Mapping[str, int] | None, most: int) -> TableCell:
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
