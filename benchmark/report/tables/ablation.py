"""The ablation, step by step: what each part of the last loss adds to the one before."""

from __future__ import annotations

from typing import Any

from benchmark.report.inputs import Inputs
from benchmark.report.labels import loss_label
from benchmark.report.numbers import percent
from benchmark.report.pairs import pair_table
from benchmark.report.render.table import Column, Table, TableCell, number_cell, text_column
from benchmark.report.tables import TABLES


@TABLES.register("ablation", display="Ablation")
def build(inputs: Inputs) -> Table:
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
