"""Sentences for a study of many places (data sets, settings, splits): each counts conditions instead of listing them.

A condition is one place at one batch size. Nothing is pooled over conditions: each keeps its own test.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.tables.labels import loss_label, metric_label
from benchmark.tables.numbers import count, points
from benchmark.tables.select import GROUP
from benchmark.verdicts.vocabulary import CLAIM_VERDICTS, VERDICTS

NAMED = 3  # losses that a sentence names


def best_losses(means: pd.DataFrame, metric: str, study: Any) -> str:
    """Returns which losses were best in how many of the conditions where at least two were run."""
    run = means.groupby(means["loss"].astype(str)).apply(lambda part: len(part[GROUP].drop_duplicates()))
    if (run > 1).any():  # a setting of one condition belongs to a sweep, not to the comparison
        means = means[means["loss"].astype(str).isin(run[run > 1].index)]
    winners: dict[str, int] = {}
    compared = 0
    for _, group in means.groupby(GROUP, observed=True):
        if len(group) > 1:
            compared += 1
            first = str(group.loc[group["mean"].idxmax(), "loss"])
            winners[first] = winners.get(first, 0) + 1
    places = len(means.groupby(GROUP[:3], observed=True))
    if not compared:
        return f"In none of the conditions at {count(places, 'place')} have two losses finished yet."
    ranked = sorted(winners.items(), key=lambda item: (-item[1], item[0]))
    named = ", ".join(f"{loss_label(loss, study)} in {number}" for loss, number in ranked[:NAMED])
    rest = len(ranked) - NAMED
    others = f" and {count(rest, 'other setting')} in the rest" if rest > 0 else ""
    return (
        f"The highest mean {metric_label(metric)} was reached by {named}{others} of {compared} conditions "
        f"(places times batch sizes, over {count(places, 'place')})."
    )


def against_baseline(tests: pd.DataFrame, metric: str, study: Any) -> list[str]:
    """Returns one sentence: how often each loss differed significantly from the baseline."""
    tested = tests[tests["p_holm"].notna()] if len(tests) else tests
    if tested.empty:
        return []
    baseline = loss_label(tested["against"].iloc[0], study)
    tested = tested.assign(sure=tested["significant"].astype(str) == "True", up=tested["difference"] > 0)
    counted = {
        loss: (int((part["sure"] & part["up"]).sum()), int((part["sure"] & ~part["up"]).sum()), len(part))
        for loss, part in tested.groupby(tested["loss"].astype(str))
    }
    ranked = sorted(counted.items(), key=lambda item: (-item[1][2], -item[1][0], item[0]))
    repeated = [item for item in ranked if item[1][2] > 1] or ranked
    parts = [
        f"{loss_label(loss, study)} (higher in {up}, lower in {down}, of {total})"
        for loss, (up, down, total) in repeated[: 2 * NAMED]
    ]
    rest = len(ranked) - len(parts)
    more = f"; {count(rest, 'further setting')} in the tables" if rest > 0 else ""
    return [
        f"Significant differences to {baseline} in {metric_label(metric)} after Holm's correction, by condition: "
        f"{', '.join(parts)}{more}."
    ]


def last_step(steps: pd.DataFrame, metric: str, study: Any) -> list[str]:
    """Returns one sentence on the last step of the ablation over all conditions."""
    if steps.empty or len(study.comparison.ablation) < 2:
        return []
    before, after = study.comparison.ablation[-2:]
    last = steps[steps["loss"].eq(after) & steps["against"].eq(before)]
    if last.empty:
        return []
    sure = last["significant"].astype(str) == "True"
    up, down = int((sure & (last["difference"] > 0)).sum()), int((sure & (last["difference"] < 0)).sum())
    span = f"{points(last['difference'].min())} to {points(last['difference'].max())} points"
    return [
        f"The step from {loss_label(before, study)} to {loss_label(after, study)} changes {metric_label(metric)} by "
        f"{span} over {count(len(last), 'condition')}: significantly up in {up}, down in {down}."
    ]


def published(verdicts: pd.DataFrame) -> list[str]:
    """Returns one sentence that counts the verdicts on published numbers; none when nothing was judged."""
    if verdicts.empty:
        return []
    numbers = verdicts[verdicts["source"] != "frozen"]["verdict"].value_counts()
    if numbers.drop("not_run", errors="ignore").sum() == 0:
        return []
    parts = [f"{numbers[word]} {word.replace('_', ' ')}" for word in VERDICTS if word in numbers]
    return [f"Of {count(int(numbers.sum()), 'published number')}: {', '.join(parts)}."]


def claims(table: pd.DataFrame, stand_in: str | None) -> list[str]:
    """Returns one sentence that counts the verdicts on the papers' claims, as far as any was judged."""
    if table.empty:
        return []
    reading = "here" if stand_in else "published"
    rows = table[table["reading"] == reading]
    verdicts = rows["verdict"].value_counts()
    if verdicts.drop("not_run", errors="ignore").sum() == 0:
        return []
    parts = [f"{verdicts[word]} {word.replace('_', ' ')}" for word in CLAIM_VERDICTS if word in verdicts]
    where = f" asked of {stand_in}" if stand_in else ""
    never = 0 if stand_in or "outside" not in table else int(rows["outside"].fillna("").ne("").sum())
    rest = f" ({never} of them outside of every study)" if never else ""
    return [f"Of {count(int(verdicts.sum()), 'claim')}{where}: {', '.join(parts)}{rest}."]
