"""Sentences on what a study shows; none claims more than its test.

A condition is one dataset, setting and split at one batch size. A ``single`` study, of one dataset,
setting and split, names its batch sizes; another counts conditions. Nothing is pooled over
conditions: each keeps its own test.
"""

from collections import defaultdict
from typing import Any

import pandas as pd

from benchmark.report.inputs import CONDITION, WHERE, records
from benchmark.report.labels import dataset_label, loss_label, loss_order, metric_label
from benchmark.report.numbers import DASH, count, interval, listed, mean_sd, points
from benchmark.report.pairs import is_true
from benchmark.study import Study

NAMED = 3  # losses that a sentence on many conditions names


def best_losses(means: pd.DataFrame, study: Study, single: bool) -> str:
    """Return which losses have the highest mean of one metric (rows of ``summary.csv``)."""
    metric = metric_label(means["metric"].iloc[0])
    if not single:
        return _most_often_best(means, metric, study)
    parts = []
    for batch_size, group in means.groupby("batch_size"):
        first, *rest = records(group.sort_values("mean", ascending=False))
        second = (
            f"; second {loss_label(rest[0].loss, study)} with {_score(rest[0])}" if rest else ""
        )
        name = loss_label(first.loss, study)
        parts.append(f"{name} at batch size {batch_size} ({_score(first)}{second})")
    where = dataset_label(*means[WHERE].iloc[0])
    return f"On {where} the highest mean {metric} was reached by {listed(parts)}."


def _most_often_best(means: pd.DataFrame, metric: str, study: Study) -> str:
    """Return which losses are best in how many of the conditions where at least two were run.

    Where all conditions are batch sizes of one setting, scores can be compared, and the highest of
    them is named with its value.
    """
    compared = means[means.groupby(CONDITION)["loss"].transform("size") > 1]
    places = len(compared.drop_duplicates(WHERE))
    if not places:
        places = len(means.drop_duplicates(WHERE))
        return f"In none of the conditions of {count(places, 'setting')} have two losses finished."
    first = compared.loc[compared.groupby(CONDITION)["mean"].idxmax()]
    winners = first["loss"].value_counts()
    ranked: list[tuple[Any, int]] = sorted(winners.items(), key=lambda item: (-item[1], item[0]))
    named = ", ".join(f"{loss_label(loss, study)} in {number}" for loss, number in ranked[:NAMED])
    rest = len(ranked) - NAMED
    others = f" and {count(rest, 'other loss')} in the rest" if rest > 0 else ""
    kind = "batch sizes" if places == 1 else f"batch sizes of {places} datasets and settings"
    text = (
        f"The highest mean {metric} was reached by {named}{others} of "
        f"{count(len(first), 'condition')} ({kind})"
    )
    if places == 1:
        top = next(records(first.nlargest(1, "mean")))
        name = loss_label(top.loss, study)
        text += f"; the highest of all by {name} at batch size {top.batch_size} ({_score(top)})"
    return f"{text}."


def noise_shares(noise: pd.DataFrame, metric: str, study: Study) -> list[str]:
    """Return for each loss of a square which share of the variance each source makes."""
    if noise.empty:
        return []
    own = noise[noise["metric"] == metric]
    sentences = []
    for _, group in own.groupby([*CONDITION, "loss"], sort=False):
        first, *_ = rows = list(records(group))
        parts = [f"{row.source} {_share(row)}" for row in rows]
        where = dataset_label(first.dataset, first.setting, first.split)
        loss, runs = loss_label(first.loss, study), count(int(first.runs), "run")
        sentences.append(
            f"Shares of the variance of {metric_label(metric)} over {runs} of {loss} "
            f"({where}, batch size {first.batch_size}): "
            f"{listed(parts)}. Interaction is what sources do only together."
        )
    return sentences


def _share(row: Any) -> str:
    return f"{100 * row.share:.0f}% [{100 * row.low:.0f}, {100 * row.high:.0f}]"


def baseline_differences(tests: pd.DataFrame, study: Study, single: bool) -> list[str]:
    """Return one sentence: which losses differ significantly from the baseline, and where."""
    if tests.empty:
        return []
    baseline = loss_label(tests["against"].iloc[0], study)
    metric = metric_label(tests["metric"].iloc[0])
    tests = tests[tests["p_holm"].notna()]
    if tests.empty:
        text = f"Nothing could be tested against {baseline}: that takes at least two common seeds."
        return [text] * single
    sure = tests[tests["significant"].map(is_true)]
    conditions = len(tests.drop_duplicates(CONDITION))
    over = f"{count(len(tests), 'comparison')} in {count(conditions, 'condition')}"
    if sure.empty:
        return [
            f"Against {baseline}, after Holm's correction, no loss differs significantly in "
            f"{metric} ({over})."
        ]
    left = len(tests) - len(sure)
    if not single:
        total = tests["loss"].value_counts()
        more = (
            f"; no significant difference in the other {left} of {over}"
            if left
            else f", in all {over}"
        )
        return [
            f"Significant differences to {baseline} in {metric} after Holm's correction, by "
            f"condition: {_by_loss(sure, total, study)}{more}."
        ]
    sizes = sorted(tests["batch_size"].unique())
    groups = {"higher": sure[sure["difference"] > 0], "lower": sure[sure["difference"] < 0]}
    ways = [
        f"{word} for {_by_batch_size(group, sizes, study)}"
        for word, group in groups.items()
        if len(group)
    ]
    rest = f"; {left} of {count(len(tests), 'comparison')} show no significant difference"
    return [
        f"Against {baseline}, after Holm's correction, {metric} is significantly "
        f"{' and '.join(ways)}{rest if left else ''}."
    ]


def _by_loss(sure: pd.DataFrame, total: pd.Series, study: Study) -> str:
    """Return "SupAP (higher in 3, lower in 1 of 6), FastAP (lower)", most conditions first."""
    ways = {
        str(loss): ((part["difference"] > 0).sum(), (part["difference"] < 0).sum())
        for loss, part in sure.groupby("loss")
    }
    ranked = sorted(ways, key=lambda loss: (-sum(ways[loss]), -ways[loss][0], loss))
    parts = []
    for loss in ranked[: 2 * NAMED]:
        words = [(word, n) for word, n in zip(("higher", "lower"), ways[loss], strict=True) if n]
        told = ", ".join(f"{word} in {n}" for word, n in words) + f" of {total[loss]}"
        told = words[0][0] if total[loss] == 1 else told
        parts.append(f"{loss_label(loss, study)} ({told})")
    rest = len(ranked) - len(parts)
    return ", ".join([*parts, *[count(rest, "further setting")] * (rest > 0)])


def _by_batch_size(group: pd.DataFrame, sizes: list[int], study: Study) -> str:
    """Return "SupAP and ROADMAP (at every batch size), FastAP (at 32)"."""
    together: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for loss in loss_order(group["loss"], study):
        at = sorted(group.loc[group["loss"] == loss, "batch_size"])
        together[tuple(at)].append(loss_label(loss, study))
    if len(sizes) == 1:
        return listed([name for names in together.values() for name in names])
    return ", ".join(
        f"{listed(names)} (at "
        + ("every batch size)" if [*at] == sizes else f"{listed([*map(str, at)])})")
        for at, names in together.items()
    )


def last_step(steps: pd.DataFrame, study: Study, single: bool) -> list[str]:
    """Return one sentence on the last step of the ablation: each test, or their range over many."""
    if steps.empty or len(study.comparison.ablation) < 2:
        return []
    before, after = study.comparison.ablation[-2:]
    last = steps[steps["loss"].eq(after) & steps["against"].eq(before)]
    if last.empty:
        return []
    text = (
        f"The step from {loss_label(before, study)} to {loss_label(after, study)} changes "
        f"{metric_label(last['metric'].iloc[0])} by "
    )
    if single or len(last) == 1:
        tests = [_step(row) for row in last.sort_values("batch_size").itertuples()]
        return [f"{text}{listed(tests)}."]
    sure = last[last["significant"].map(is_true)]
    up, down = (sure["difference"] > 0).sum(), (sure["difference"] < 0).sum()
    ways = [f"{word} in {number}" for word, number in (("up", up), ("down", down)) if number]
    span = f"{points(last['difference'].min())} to {points(last['difference'].max())} points"
    told = ", ".join(ways) or "in none"
    return [f"{text}{span} over {len(last)} conditions, significantly {told}."]


def _step(row: Any) -> str:
    """Return "+1.20 points [+0.80, +1.60] at batch size 32 (significant)"."""
    verdict = "significant" if is_true(row.significant) else "not significant"
    verdict = "no test" if pd.isna(row.p_holm) else verdict
    span = interval(row.ci_low, row.ci_high)
    told = "" if span == DASH else f" {span}"
    return f"{points(row.difference)} points{told} at batch size {row.batch_size} ({verdict})"


def _score(row: Any) -> str:
    """Return the score of one row of means: "82.08 ± 0.51%, n=3"."""
    return f"{mean_sd(row.mean, row.sd)}%, n={row.n}"
