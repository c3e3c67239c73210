"""What has no result, each with the reason: runs of the study, and published numbers."""

from collections import Counter

from benchmark.papers.paper import cite, countable_numbers
from benchmark.report.inputs import Inputs, records
from benchmark.report.labels import dataset_label
from benchmark.report.numbers import count
from benchmark.report.pairs import loss_field
from benchmark.report.table import (
    TONES,
    Column,
    Field,
    NothingToShow,
    Section,
    Table,
    TableCell,
    filled,
    number_cell,
    text_column,
    words,
)
from benchmark.report.tables import TABLES

_MEANING = {  # the gravest first
    "failed": "the job ended with an error",
    "diverged": "the loss became infinite or not a number: a result, shown as such",
    "stale": "made from another specification than that of the study now",
    "missing": "not run yet",
}
MISSING = "Runs without a result"


@TABLES.register("missing", display=MISSING)
def missing(inputs: Inputs) -> Table:
    """Return failed, diverged, stale and missing runs; NothingToShow when every run finished."""
    runs = inputs.runs
    lost = runs[runs["status"] != "ok"]
    if lost.empty:
        raise NothingToShow(
            f"nothing is missing: all {count(len(runs), 'run')} finished"
            if len(runs)
            else "no run is recorded for this study"
        )
    lost = lost.assign(order=lost["status"].map([*_MEANING].index))
    lost = lost.sort_values(["order", "dataset", "setting", "loss", "batch_size", "seed"])
    fields = [
        words("Status", lambda run: TableCell(run.status, tone=TONES[run.status])),
        words("Dataset · setting", lambda run: TableCell(dataset_label(run.dataset, run.setting))),
        loss_field(inputs.study),
        Field(Column(("Batch size",)), lambda run: number_cell(str, run.batch_size)),
        Field(Column(("Seed",)), lambda run: number_cell(str, run.seed)),
        words("Reason", lambda run: TableCell(run.reason or _MEANING[run.status])),
    ]
    counts = lost["status"].value_counts()
    parts = [
        f"{counts[status]} {status} ({meaning})"
        for status, meaning in _MEANING.items()
        if status in counts
    ]
    caption = f"{len(lost)} of {count(len(runs), 'run')} gave no usable number: {'; '.join(parts)}."
    return filled(MISSING, caption, fields, (("", run) for run in records(lost)))


OUTSIDE = "Published numbers outside of every study"


@TABLES.register("outside", display=OUTSIDE)
def outside(inputs: Inputs) -> Table:
    """Return one row per printed table and reason; only for papers that the study covers whole."""
    published = inputs.study.references.published
    numbers = [each for each in countable_numbers() if each.source in published]
    if not numbers:
        raise NothingToShow(
            "the study covers no paper as a whole, so none of its numbers can be left out"
        )
    found = Counter((each.source, each.table, each.outside) for each in numbers if each.outside)
    if not found:
        raise NothingToShow("every number that its authors trained belongs to a run of some study")
    rows = [
        [TableCell(cite(source, table)), number_cell(str, left_out), TableCell(reason)]
        for (source, table, reason), left_out in found.items()
    ]
    caption = (
        f"{found.total()} of the {len(numbers)} numbers that the authors of these papers trained "
        "themselves have no run here."
    )
    columns = [text_column("Printed in"), Column(("Numbers",), ("count",)), text_column("Reason")]
    return Table(OUTSIDE, caption, columns, [Section("", rows)])
