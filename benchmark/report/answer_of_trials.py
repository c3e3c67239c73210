"""The answer of a study at equal budgets of trials, and of a challenge to its field."""

from collections.abc import Callable, Iterator

import pandas as pd

from benchmark.core.records import SEPARATOR
from benchmark.core.words import count, interval, listed, percent, points
from benchmark.report.labels import dataset_name, metric_label
from benchmark.report.row_types import BudgetRow
from benchmark.report.study_results import StudyResults, records, rows_of
from benchmark.study import Study
from benchmark.study.trials import EQUAL

Label = Callable[[str], str]  # the display name of a loss
ENOUGH = 5  # trials below which nothing is concluded about a challenger
NAMED = 8  # losses that a sentence names
OF_HEADS = "Best for a head on this network; that says nothing of fine-tuning."


def answer_of_trials(inputs: StudyResults) -> list[str]:
    """Return the sentences: what a challenge allows and where it stands, then the whole field."""
    ranks = inputs.some("budget_ranks")
    sentences = []
    if inputs.study.references.field:
        challenger = inputs.study.comparison.baseline
        sentences = challenge(ranks, inputs.paired, challenger, inputs.headline, inputs.label)
    for dataset, rows in ranks.groupby("dataset", sort=False):
        sentences += order_in(str(dataset), rows, inputs)
    return [*sentences, of_heads(inputs.study)]


def of_heads(study: Study) -> str:
    """Return what the ranks of a study are of, where it trains heads on frozen networks alone."""
    heads = all(block.recipe.model.freeze_backbone for block in study.blocks)
    return OF_HEADS if heads else ""


def challenge(
    ranks: pd.DataFrame, tests: pd.DataFrame, loss: str, metric: str, label: Label
) -> list[str]:
    """Return what the trials of a challenger allow, where it stands, and from whom it differs.

    ``ranks`` are the rows of ``budget_ranks.csv``, ``tests`` those of ``paired.csv``.
    """
    trials = int(ranks["trials"].max())
    sentences = [
        standing(ranks, loss, metric, label),
        differences(tests, loss, metric, trials, label),
    ]
    if trials < ENOUGH:
        few = "1 trial is one setting" if trials == 1 else f"{trials} trials are few settings"
        caution = (
            f"No conclusion about {label(loss)} at equal effort: {few} drawn at random from its "
            "ranges, and another draw may rank it elsewhere. 16 trials leave less to chance; the "
            "comparison with its defaults needs no trials."
        )
        sentences.insert(0, caution)
    return sentences


def standing(ranks: pd.DataFrame, loss: str, metric: str, label: Label) -> str:
    """Return where a challenger stands in the field, after its trials and with its defaults."""
    most = int(ranks["trials"].max())
    places = []
    for budget, rules in ((most, f"after {count(most, 'trial')}"), (0, "with its defaults")):
        field = rows_of(ranks, trials=budget)
        row = next(records(rows_of(field, loss=loss), BudgetRow))
        bounds = f"[{row.rank_low:.0f} to {row.rank_high:.0f}]"
        score = f"{metric_label(metric)} {percent(row.mean)}"
        span = interval(row.ci_low, row.ci_high, percent)
        places.append(f"rank {row.rank:.0f} of {len(field)} {bounds} {rules} ({score} {span})")
    return f"{label(loss)} has {listed(places)}."


def differences(tests: pd.DataFrame, loss: str, metric: str, trials: int, label: Label) -> str:
    """Return which losses of the field a challenger differs from after its trials."""
    tests = rows_of(tests, metric=metric, kind="baseline", against=loss)
    tests = tests[tests["setting"].str.endswith(f"{SEPARATOR}{EQUAL}{trials}")]
    sure = tests[tests["significant"].astype(bool)]
    parts = []
    for word, others in (("below", sure["difference"] > 0), ("above", sure["difference"] < 0)):
        names = sorted(label(other) for other in sure.loc[others, "loss"])
        if len(names) > NAMED:
            names = [*names[:NAMED], count(len(names) - NAMED, "other")]
        if names:
            parts.append(f"significantly {word} {listed(names)}")
    parts.append(f"not told apart from {len(tests) - len(sure)}")
    after = count(trials, "trial")
    return (
        f"The setting that {after} chose is {', '.join(parts)} of the {len(tests)} others. These "
        "are tests of settings: other trials may choose others."
    )


def order_in(dataset: str, ranks: pd.DataFrame, inputs: StudyResults) -> Iterator[str]:
    """Yield who is first on a dataset after all trials and as published, and what trials change."""
    most = ranks["trials"].max()
    metric = metric_label(inputs.headline)
    for budget, rules in ((most, f"after {count(int(most), 'trial')}"), (0, "as published")):
        field = rows_of(ranks, trials=budget).sort_values("rank")
        first = next(records(field, BudgetRow))
        level = int((field["rank_low"].iloc[1:] <= 1.0).sum())
        also = f"; {count(level, 'other')} may be first as well" if level else ""
        score = f"{metric} {percent(first.mean)} {interval(first.ci_low, first.ci_high, percent)}"
        yield (
            f"On {dataset_name(dataset)} {inputs.label(first.loss)} is first of {len(field)} "
            f"{rules}: {score}{also}."
        )
    means = ranks.pivot(index="loss", columns="trials", values="mean")
    tau = means[0].corr(means[most], method="kendall")
    tests = rows_of(inputs.some("budget_gaps"), dataset=dataset, trials=most)
    sure = tests.loc[tests["significant"].astype(bool), "difference"]
    yield (
        f"Trials change the score of a loss by {points(tests['difference'].median())} points in "
        f"the median, significantly up for {(sure > 0).sum()} and down for {(sure < 0).sum()} of "
        f"{len(tests)}; Kendall's tau between the two orders is {tau:.2f}."
    )
