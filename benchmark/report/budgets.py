"""What a study at equal budgets says, in sentences."""

from __future__ import annotations

import pandas as pd

from benchmark.report.inputs import records
from benchmark.report.numbers import count, percent


def standing(ranks: pd.DataFrame, loss: str) -> list[str]:
    """Return where a loss stands under each rule set: score, rank with its interval, time."""
    sentences = []
    for row in records(ranks[ranks["loss"] == loss]):
        field = ranks[(ranks["trials"] == row.trials) & (ranks["dataset"] == row.dataset)]
        rules = f"best of {count(row.trials, 'trial')}" if row.trials else "as published"
        others = field.loc[field["loss"] != loss, "run_seconds"].median()
        sentences.append(
            f"{row.dataset}, {rules}: {percent(row.mean)} "
            f"[{percent(row.ci_low)}, {percent(row.ci_high)}], rank {row.rank:.0f} of {len(field)} "
            f"[{row.rank_low:.0f} to {row.rank_high:.0f}]; {row.run_seconds:.1f} s a run, "
            f"the field's median is {others:.1f} s"
        )
    return sentences
