"""The scores of several laboratories beside each other."""

from collections.abc import Iterator
from functools import partial

from benchmark.core.words import mean_sd, points
from benchmark.report.artefacts import PlannedArtefact
from benchmark.report.study_results import StudyResults
from benchmark.report.table import Table, filled, numbers, words
from benchmark.report.tables.loss_tables import METRIC, by_condition, named

NAME = "laboratories"
TITLE = "Laboratories side by side"


def laboratory_tables(inputs: StudyResults) -> Iterator[PlannedArtefact]:
    """Yield the table of a study that has runs of other laboratories."""
    if "laboratory" in inputs.laboratories:
        yield PlannedArtefact(NAME, TITLE, "study", partial(laboratories, inputs))


def laboratories(inputs: StudyResults) -> Table:
    """Return for each loss and metric a row for each laboratory, the own runs first."""
    columns = [
        named(inputs),
        METRIC,
        words("Laboratory", lambda row: row.laboratory or "here"),
        numbers("Score", mean_sd, mean="mean", sd="sd"),
        numbers("Runs", str, runs="n"),
        numbers("Difference, points", points, difference="difference"),
    ]
    caption = (
        "Test scores in percent at the last epoch, mean ± standard deviation over the seeds of one "
        "laboratory; differences are from the first. They have no test, and nothing is pooled: "
        "all else on this page uses the runs here alone."
    )
    rows = by_condition(inputs.some(NAME), inputs)
    return filled(TITLE, caption, columns, rows)
