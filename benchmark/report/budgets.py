"""What a study at equal budgets says, in sentences."""

from __future__ import annotations

import pandas as pd

from benchmark.report.inputs import Inputs, records
from benchmark.report.labels import dataset_name, loss_label, metric_label
from benchmark.report.numbers import count, percent, points
from benchmark.report.pairs import is_true


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


def budget_answer(inputs: Inputs) -> list[str]:
    """Return the answer of a study at equal budgets: the order under both rule sets, the gains."""
    ranks, gaps = inputs.budget("budget_ranks"), inputs.budget("budget_gaps")
    most, metric = ranks["trials"].max(), metric_label(inputs.headline)
    sentences = []
    for dataset, part in ranks.groupby("dataset", sort=False):
        where = f"On {dataset_name(str(dataset))} "
        for budget, rules in ((most, f"after {count(int(most), 'trial')}"), (0, "as published")):
            here = part[part["trials"] == budget].sort_values("rank")
            first = here.iloc[0]
            level = here[here["rank_low"] <= 1.0]["loss"].iloc[1:]
            also = f"; {count(len(level), 'other')} may be first as well" if len(level) else ""
            name = loss_label(first["loss"], inputs.study)
            sentences.append(
                f"{where}{name} is first of {len(here)} {rules}: "
                f"{metric} {percent(first['mean'])} "
                f"[{percent(first['ci_low'])}, {percent(first['ci_high'])}]{also}."
            )
        both = part.pivot(index="loss", columns="trials", values="mean")
        tau = both[0].corr(both[most], method="kendall")
        tests = gaps[(gaps["dataset"] == dataset) & (gaps["trials"] == most)]
        sure = tests[tests["significant"].map(is_true)]
        sentences.append(
            f"Trials change the score of a loss by {points(tests['difference'].median())} points "
            f"in the median, significantly up for {(sure['difference'] > 0).sum()} and down for "
            f"{(sure['difference'] < 0).sum()} of {len(tests)}; Kendall's tau between the two "
            f"orders is {tau:.2f}."
        )
    return sentences
