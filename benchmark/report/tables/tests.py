"""Paired tests: every loss against the baseline, all pairs, and the ablation step by step."""

from typing import Any

from benchmark.report.inputs import Inputs
from benchmark.report.labels import loss_label
from benchmark.report.numbers import percent
from benchmark.report.pairs import loss_cell, loss_field, pair_table
from benchmark.report.table import Table, TableCell, numbers, words
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
        [loss_field(inputs.study)],
        outcomes=("higher", "lower"),
    )


@TABLES.register("all_pairs", display="Paired tests of all pairs")
def all_pairs(inputs: Inputs) -> Table:
    """Return the tests of all pairs of losses; positive means that the first is better."""
    study = inputs.study
    return pair_table(
        inputs,
        inputs.tests("pairs"),
        "Paired tests of all pairs",
        "First loss minus second.",
        [
            words("First", lambda row: loss_cell(row.loss, study)),
            words("Second", lambda row: loss_cell(row.against, study)),
        ],
        outcomes=("first higher", "second higher"),
    )


@TABLES.register("ablation", display="Ablation")
def ablation(inputs: Inputs) -> Table:
    """Return per batch size the steps of the study's ablation and their total, with their tests."""
    tests, study = inputs.tests("ablation"), inputs.study
    names = [loss_label(label, study) for label in study.comparison.ablation]

    def step(row: Any) -> TableCell:
        named = f"{loss_label(row.against, study)} → {loss_label(row.loss, study)}"
        return TableCell(f"{named} (total)" if row.step == "total" else named)

    return pair_table(
        inputs,
        tests,
        "Ablation",
        f"Steps {' → '.join(names)}. Means are in percent over the common seeds.",
        [
            words("Step", step),
            numbers("From", percent, mean="mean_against"),
            numbers("To", percent, mean="mean"),
        ],
        outcomes=("gain", "loss"),
    )
