"""Whether the printed tables came out: a row for each, in the order of the print."""

from collections.abc import Iterator
from functools import partial

import pandas as pd

from benchmark.core.words import listed, plain, words_of
from benchmark.published.paper import Papers
from benchmark.report.labels import dataset_name, metric_label
from benchmark.report.row_types import OutcomeRow, VerdictRow
from benchmark.report.study_results import StudyResults, records
from benchmark.report.table import (
    Column,
    Line,
    NothingToShow,
    Table,
    TableCell,
    filled,
    number_cell,
)
from benchmark.report.tables import TABLES
from benchmark.report.tally import judged, published_of
from benchmark.stats.reproduction import DRIFTED, REPRODUCED
from benchmark.verdicts.forecast import undecidable
from benchmark.verdicts.verdicts import INCONCLUSIVE, LOW, NOT_RUN, is_close, is_score

PRINTED_IN = ["source", "table"]
GROUP = [*PRINTED_IN, "dataset", "metric"]  # numbers that one forecast is about


@TABLES.register("outcomes", display="Did the printed tables come out?")
def outcomes(inputs: StudyResults) -> Table:
    """Return one row per printed table that the study refers to."""
    published = published_of(inputs.verdicts)
    if not judged(published):
        raise NothingToShow("no published number was run under the conditions of its paper")
    columns = [
        Column(
            ("Printed in",),
            numeric=False,
            words=("table",),
            cell=partial(_printed_in, inputs.papers),
        ),
        _counts(("Numbers",), "numbers"),
        _counts(("Reproduced",), "reproduced", tone="good"),
        Column(("Drifted (stand)",), ("drifted", "standing"), cell=_drifted),
        _counts(("Undecided", "close"), "close", tone="unsure"),
        _counts(("Undecided", "far"), "far", tone="unsure"),
        Column(("Undecided", "(not decidable)"), ("undecidable",), cell=_undecidable),
        _counts(("Not run",), "not_run", tone="muted"),
    ]
    rows = table_outcomes(inputs)
    if any(row.unjudged for row in rows):
        columns.append(_counts(("Not a score",), "unjudged", tone="muted"))
    columns.append(Column(("Median", "difference"), ("points",), cell=_median))
    caption = (
        "One row for each printed table. Undecided (inconclusive) numbers are close if they differ "
        "by at most the margin, and far if by more: that is where the estimate lies, and no test. "
        "In brackets: those of the close and far numbers that no number of seeds decides, because "
        "the print is too uncertain. Times and counts are not scores and get no verdict. Drifts "
        "that stand are named below their table. Median: of the sizes of the differences, "
        "in points."
    )
    return filled("Did the printed tables come out?", caption, columns, [("", row) for row in rows])


def table_outcomes(inputs: StudyResults) -> list[OutcomeRow]:
    """Return the outcome of each printed table, in the order of the print.

    An outcome has counts of the numbers of the table, and more:

    close, far     undecided numbers, whose difference is inside the margin, or beyond it
    undecidable    those of the close and far numbers that no number of seeds decides
    unjudged       numbers that get no verdict, such as times
    median         median of the sizes of the differences, in points; NaN where nothing was run
    drifts         a line for each drift that stands
    """
    never = undecidable(inputs.grid)
    numbers = published_of(inputs.verdicts)
    verdict = numbers["verdict"]
    size = numbers["difference"].abs()
    undecided = verdict == INCONCLUSIVE
    close = undecided & is_close(numbers)
    drifted = verdict == DRIFTED
    standing = drifted & numbers["stands"].eq(True)
    cells = numbers[GROUP].itertuples(index=False, name=None)
    hopeless = pd.Series([cell in never for cell in cells], numbers.index)
    is_judged = is_score(numbers)
    counted = numbers[PRINTED_IN].assign(
        numbers=True,
        reproduced=verdict == REPRODUCED,
        drifted=drifted,
        standing=standing,
        close=close,
        far=undecided & ~close,
        undecidable=undecided & hopeless,
        not_run=is_judged & (verdict == NOT_RUN),
        unjudged=~is_judged,
    )
    counts = counted.groupby(PRINTED_IN).sum()
    counts["median"] = size.groupby([numbers[name] for name in PRINTED_IN]).median()
    counts["drifts"] = [
        [*standing_drifts(rows[standing[rows.index]], rows, inputs)]
        for _, rows in numbers.groupby(PRINTED_IN)
    ]
    rows = records(counts.reset_index(), OutcomeRow)
    papers = inputs.grid.papers
    return sorted(rows, key=lambda row: papers.in_print(row.source, row.table))


def standing_drifts(
    drifts: pd.DataFrame, table: pd.DataFrame, inputs: StudyResults
) -> Iterator[str]:
    """Yield "ROADMAP on SOP lower by up to 2.1 points of R@1 and mAP@R" for drifts that stand.

    Backbone and batch size are named where the printed ``table`` has several.
    """
    if drifts.empty:
        return
    names = inputs.papers.vocabulary(str(drifts["source"].iloc[0]))
    keys = ["loss", "dataset", "backbone", "setting", "batch_size", "direction"]
    for _, rows in drifts.groupby(keys, sort=False, dropna=False):
        row = next(records(rows, VerdictRow))
        where = f"{inputs.label(row.loss)} on {dataset_name(row.dataset)}"
        if table["backbone"].nunique() > 1:
            where += f" with {names.name('backbone', row.backbone)}"
        if table["batch_size"].nunique() > 1:
            where += f" at batch size {row.batch_size:.0f}"
        direction = "lower" if row.direction == LOW else "higher"
        most = f"{rows['difference'].abs().max():.1f}"
        by = f"up to {most}" if len(rows) > 1 else most
        metrics = dict.fromkeys(metric_label(metric) for metric in rows["metric"])
        yield f"{where} {direction} by {by} points of {words_of(listed(metrics))}"


def _printed_in(papers: Papers, row: OutcomeRow) -> TableCell:
    lines = tuple(Line(f"{words_of(text)} stands", "bad") for text in row.drifts)
    return TableCell(papers.cite(row.source, row.table), lines=lines, words=(row.table,))


def _counts(header: tuple[str, ...], name: str, tone: str = "") -> Column:
    def cell(row: OutcomeRow) -> TableCell:
        number = getattr(row, name)
        return number_cell(str, number, tone=tone if number else "")

    return Column(header, (name,), cell=cell)


def _drifted(row: OutcomeRow) -> TableCell:
    text = f"{row.drifted} ({row.standing})" if row.drifted else "0"
    tone = "bad" if row.drifted else ""
    return TableCell(text, numbers=(row.drifted, row.standing), tone=tone)


def _undecidable(row: OutcomeRow) -> TableCell:
    return number_cell(lambda count: f"({count})" if count else "", row.undecidable)


def _median(row: OutcomeRow) -> TableCell:
    return number_cell(plain, row.median)
