"""The known deviations of our runs from the authors', as remarks beside verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from benchmark.core.cells import Cell
from benchmark.papers.fidelity import study_ledger, touching
from benchmark.papers.verdicts.records import Verdict
from benchmark.study import Study


def deviation_remarks(study: Study) -> dict[Cell, str]:
    """Return the deviations of each cell whose expected effect is above 0.3 points, in words."""
    rows = study_ledger(study)
    remarks: dict[Cell, str] = {}
    for block in study.blocks if rows else ():
        for spec in block.specs():
            if spec.cell not in remarks:
                large = [row for row in touching(rows, block.recipe_name, spec) if row.large]
                remarks[spec.cell] = "; ".join(row.sentence for row in large)
    return remarks


def with_deviations(verdicts: Iterable[Verdict], study: Study) -> list[Verdict]:
    """Return verdicts on published numbers with the deviations of their runs in the remark."""
    remarks = deviation_remarks(study)
    result = []
    for each in verdicts:
        cell = each.comparison.cell
        words = remarks.get(cell, "") if cell and each.comparison.reference.number else ""
        if words:
            joined = "; ".join(filter(None, [each.comparison.remark, f"deviates: {words}"]))
            each = replace(each, comparison=replace(each.comparison, remark=joined))
        result.append(each)
    return result
