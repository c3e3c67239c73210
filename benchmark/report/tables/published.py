"""Reference numbers beside ours with their verdicts: published tables first, then frozen runs."""

from collections.abc import Callable
from typing import Any

from benchmark.papers.verdicts import rule
from benchmark.report.inputs import Inputs, records
from benchmark.report.labels import dataset_label, loss_label, metric_label
from benchmark.report.numbers import DASH, finite, interval, p_value, plain, signed, whole, words_of
from benchmark.report.table import (
    TONES,
    Column,
    Field,
    Table,
    TableCell,
    filled,
    number_cell,
    numbers,
    words,
)
from benchmark.report.tables import TABLES

TITLE = "Published and frozen numbers beside ours"
# Short words for the marks of ``benchmark.stats.reproduction``.
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
    verdicts = inputs.some("verdicts")
    study = inputs.study
    fields = [
        words("Row as printed", _printed),
        words("Verdict", _verdict),
        words("Stands", _stands),
        words("Loss", lambda row: _named(row.loss, lambda loss: loss_label(loss, study))),
        words("Dataset", lambda row: _named(row.dataset, dataset_label)),
        Field(Column(("Batch size",)), lambda row: number_cell(whole, row.batch_size)),
        words("Metric", lambda row: _named(row.metric, metric_label)),
        _side("Reference", "reference"),
        _side("Ours", "ours"),
        numbers("Difference", signed, points="difference"),
        numbers("Interval", _interval, low="ci_low", high="ci_high"),
        numbers("Margin", _margin, points="margin"),
        numbers("p of drift (Holm)", p_value, value="p_holm"),
        words("Reason", lambda row: _named(row.reason)),
    ]
    not_run = (verdicts["verdict"] == "not_run").groupby(
        [verdicts["source"], verdicts["table"]], sort=False
    )
    first = not_run.transform("mean").sort_values(kind="stable").index
    rows = ((_heading(row), row) for row in records(verdicts.loc[first]))
    caption = (
        "Percentage points throughout; difference is ours minus the reference. Rows marked "
        "“quoted” repeat another paper's number. The interval counts the uncertainty of both "
        f"sides. {_sentence(rule(verdicts['level'].min()))} “Stands” says whether the verdict is "
        "the same when an assumption fails: the published spread is twice ours, the published "
        "value is the best of three runs, scores have heavy tails, or laboratories differ by half "
        "a point."
    )
    return filled(TITLE, caption, fields, rows)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _heading(row: Any) -> str:
    return "Frozen runs of this study" if row.source == "frozen" else f"{row.source} · {row.table}"


def _printed(row: Any) -> TableCell:
    return _named(row.row_label, note="quoted" if row.provenance in QUOTED else "")


def _verdict(row: Any) -> TableCell:
    text = f"{words_of(row.verdict)} {_text(row.direction)}".strip()
    return TableCell(text, tone=TONES[row.verdict], note="interim" if row.interim else "")


def _stands(row: Any) -> TableCell:
    """Return whether the verdict stands when an assumption fails, else under which it does not."""
    if finite(row.stands) is None:
        return TableCell(DASH)
    names = _text(row.changes_under).split()
    if not names:
        return TableCell("yes", tone="good")
    marks = ", ".join(MARK_WORDS[name] for name in names)
    return TableCell(f"not under {marks}", tone="unsure")


def _named(value: Any, form: Callable[[str], str] = str, note: str = "") -> TableCell:
    """Return a cell with a text of the file as people read it; a dash where there is none."""
    return TableCell(form(value) if _text(value) else DASH, note=note)


def _side(header: str, side: str) -> Field:
    parts = ("mean", "sd", "n")

    def cell(row: Any) -> TableCell:
        mean, sd, n = (getattr(row, f"{side}_{part}") for part in parts)
        note = "" if finite(mean) is None or finite(n) is None else f"n={n:.0f}"
        return number_cell(_spread, mean, sd, n, note=note)

    return Field(Column((header,), parts), cell)


def _spread(mean: Any, sd: Any, n: Any) -> str:
    return plain(mean) + ("" if finite(mean) is None or finite(sd) is None else f" ± {sd:.2f}")


def _interval(low: Any, high: Any) -> str:
    return interval(low, high, signed)


def _margin(value: Any) -> str:
    return DASH if finite(value) is None else f"±{value:g}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
