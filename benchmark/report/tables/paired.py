"""Every loss against the baseline."""

from __future__ import annotations

from benchmark.report.inputs import Inputs
from benchmark.report.labels import loss_label
from benchmark.report.pairs import loss_cell, pair_table
from benchmark.report.render.table import Table, text_column
from benchmark.report.tables import TABLES


@TABLES.register("paired", display="Paired tests against the baseline")
def build(inputs: Inputs) -> Table:
    """Return the tests of each loss against the study's baseline; positive means better."""
    tests = inputs.tests("baseline")
    baseline = loss_label(tests["against"].iloc[0], inputs.study)
    return pair_table(
        inputs,
        tests,
        f"Paired tests against {baseline}",
        f"Each loss minus {baseline}.",
        [text_column("Loss")],
        lambda row: [loss_cell(row.loss, inputs.study)],
        words=("higher", "lower"),
    )
