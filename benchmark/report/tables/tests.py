"""Paired tests: every loss against the baseline, all pairs, and the ablation step by step."""

from typing import Any

from benchmark.report.inputs import Inputs
from benchmark.report.labels import loss_label
from benchmark.report.numbers import percent
from benchmark.report.pairs import loss_cell, pair_table
from benchmark.report.render.table import Column, Table, TableCell, number_cell, text_column
from benchmark.report.tables import TABLES


@TABLES.register("paired", display="Paired tests against the baseline")
def paired(inputs: Inputs) -> Table:
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


@TABLES.register("all_pairs", display="Paired tests of all pairs")
def all_pairs(inputs: Inputs) -> Table:
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


@TABLES.register("ablation", display="Ablation")
def ablation(inputs: Inputs) -> Table:
    """Return per batch size the steps of the study's ablation and their total, with their tests."""
    tests, study = inputs.tests("ablation"), inputs.study
    names = [loss_label(label, study) for label in study.comparison.ablation]

    def first_cells(row: Any) -> list[TableCell]:
        step = f"{loss_label(row.against, study)} → {loss_label(row.loss, study)}"
        return [
            TableCell(f"{step} (total)" if row.step == "total" else step),
            number_cell(percent, row.mean_against),
            number_cell(percent, row.mean),
        ]

    return pair_table(
        inputs,
        tests,
        "Ablation",
        f"Steps {' → '.join(names)}. Means are in percent over the common seeds.",
        [text_column("Step"), Column(("From",), ("mean",)), Column(("To",), ("mean",))],
        first_cells,
        words=("gain", "loss"),
    )
