"""How sure the order of the losses is when trials and seeds are drawn again."""

from __future__ import annotations

from benchmark.report.inputs import Inputs, records
from benchmark.report.labels import condition_label
from benchmark.report.numbers import percent, plain
from benchmark.report.render.table import (
    Column,
    Table,
    TableCell,
    grouped,
    number_cell,
    text_column,
)
from benchmark.report.tables import TABLES
from benchmark.report.tables.budgets import rule_words

TITLE = "How sure the order is"
DRAWN = {"seeds": "seeds", "trials": "trials and folds", "both": "all of them"}


@TABLES.register("budget_order", display=TITLE, of_trials=True)
def build(inputs: Inputs) -> Table:
    """Return one row per rule set and kind of chance."""
    rows = [
        (
            condition_label(row.dataset, row.setting, "test", row.batch_size),
            [
                TableCell(rule_words(row.trials)),
                TableCell(DRAWN[row.source]),
                number_cell(plain, row.kendall),
                number_cell(percent, row.flipped),
                number_cell(percent, row.best_kept),
            ],
        )
        for row in records(inputs.budget("budget_order"))
    ]
    caption = (
        "The order of the losses compared with the one that 2,000 draws with replacement give. "
        "Kendall's tau: 1 is the same order, 0 no relation. Only chosen settings were run on the "
        "test classes: trials drawn again move a test score by as much as the best score on the "
        "held-out classes."
    )
    columns = [
        text_column("Rule set"),
        text_column("Drawn again"),
        Column(("Kendall's tau",), parts=("kendall",)),
        Column(("Pairs in another order (%)",), parts=("flipped",)),
        Column(("Same best loss (%)",), parts=("best_kept",)),
    ]
    return Table(TITLE, caption, columns, grouped(rows))
