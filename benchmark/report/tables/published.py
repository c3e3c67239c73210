"""Reference numbers beside ours with their verdicts: published tables first, then frozen runs."""

from typing import Any

from benchmark.papers.verdicts.words import rule
from benchmark.report.inputs import Inputs
from benchmark.report.labels import dataset_label, loss_label, metric_label
from benchmark.report.numbers import DASH, finite, interval, p_value, plain, signed, words_of
from benchmark.report.render.table import (
    TONES,
    Column,
    NothingToShow,
    Table,
    TableCell,
    grouped,
    number_cell,
    text_column,
)
from benchmark.report.tables import TABLES
from benchmark.study import Study

TITLE = "Published and frozen numbers beside ours"
# Short words for the marks of ``benchmark.stats.sensitivity``.
MARK_WORDS = {
    "spread": "published spread ×2",
    "best_of_3": "best of 3",
    "tails": "heavy tails",
    "laboratory": "laboratories differ",
}
QUOTED = ("copied", "quoted")  # provenances of numbers that another paper printed first


@TABLES.register("published", display=TITLE)
def build(inputs: Inputs) -> Table:
    """Return one row per reference number; tables with something measured come first."""
    verdicts = inputs.verdicts
    if verdicts.empty:
        raise NothingToShow(
            "there are no verdicts: the study names no references, or none have been judged yet"
        )
    columns = [
        text_column("Row as printed"),
        text_column("Verdict"),
        text_column("Stands"),
        text_column("Loss"),
        text_column("Dataset"),
        Column(("Batch size",)),
        text_column("Metric"),
        Column(("Reference",), parts=("mean", "sd", "n")),
        Column(("Ours",), parts=("mean", "sd", "n")),
        Column(("Difference",), parts=("points",)),
        Column(("Interval",), parts=("low", "high")),
        Column(("Margin",), parts=("points",)),
        Column(("p of drift (Holm)",), parts=("value",)),
        text_column("Reason"),
    ]
    not_run = (verdicts["verdict"] == "not_run").groupby(
        [verdicts["source"], verdicts["table"]], sort=False
    )
    first = not_run.transform("mean").sort_values(kind="stable").index
    sections = grouped(
        (_heading(row), _row(row, inputs.study)) for row in verdicts.loc[first].itertuples()
    )
    caption = (
        "Percentage points throughout; difference is ours minus the reference. Rows marked "
        "“quoted” repeat another paper's number. The interval counts the uncertainty of both "
        f"sides. {_sentence(rule(verdicts['level'].min()))} “Stands” tells whether the verdict is "
        "the same when an assumption fails: the published spread is twice ours, the published "
        "value is the best of three runs, scores have heavy tails, or laboratories differ by half "
        "a point."
    )
    return Table(TITLE, caption, columns, sections)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _heading(row: Any) -> str:
    return "Frozen runs of this study" if row.source == "frozen" else f"{row.source} · {row.table}"


def _row(row: Any, study: Study) -> list[TableCell]:
    direction = f" {row.direction}" if _text(row.direction) else ""
    return [
        TableCell(_text(row.row_label) or DASH, note="quoted" if row.provenance in QUOTED else ""),
        TableCell(
            f"{words_of(row.verdict)}{direction}",
            tone=TONES[row.verdict],
            note="interim" if row.interim else "",
        ),
        _stands(row),
        TableCell(loss_label(row.loss, study) if _text(row.loss) else DASH),
        TableCell(dataset_label(_text(row.dataset)) or DASH),
        number_cell(lambda size: plain(size, 0), row.batch_size),
        TableCell(metric_label(_text(row.metric)) or DASH),
        _side(row.reference_mean, row.reference_sd, row.reference_n),
        _side(row.ours_mean, row.ours_sd, row.ours_n),
        number_cell(signed, row.difference),
        number_cell(lambda low, high: interval(low, high, signed), row.ci_low, row.ci_high),
        number_cell(_margin, row.margin),
        number_cell(p_value, row.p_holm),
        TableCell(_text(row.reason) or DASH),
    ]


def _stands(row: Any) -> TableCell:
    """Return whether the verdict stands when an assumption fails, else under which it does not."""
    if finite(row.stands) is None:
        return TableCell(DASH)
    names = _text(row.changes_under).split()
    if not names:
        return TableCell("yes", tone="good")
    words = ", ".join(MARK_WORDS[name] for name in names)
    return TableCell(f"not under {words}", tone="unsure")


def _side(mean: Any, sd: Any, n: Any) -> TableCell:
    note = "" if finite(mean) is None or finite(n) is None else f"n={n:.0f}"
    return number_cell(_spread, mean, sd, n, note=note)


def _spread(mean: Any, sd: Any, n: Any) -> str:
    return plain(mean) + ("" if finite(mean) is None or finite(sd) is None else f" ± {sd:.2f}")


def _margin(value: Any) -> str:
    return DASH if finite(value) is None else f"±{value:g}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
