"""Every loss against every other."""

from __future__ import annotations

from benchmark.report.inputs import Inputs
from benchmark.report.pairs import loss_cell, pair_table
from benchmark.report.render.table import Table, text_column
from benchmark.report.tables import TABLES


@TABLES.register("all_pairs", display="Paired tests of all pairs")
def build(inputs: Inputs) -> Table:
    """Return the tests of all pairs of losses; positive means that the first is better."""
    return pair_table(
        inputs,
        inputs.tests("pairs"),
        "Paired tests of all pairs",
        "First loss minus second.",
        [text_column("First"), text_column("Second")],
        lambda row: [loss_cell(label, inputs.study) for label in (row.loss, row.against)],
        words=("first higher", "second higher"),
    )
