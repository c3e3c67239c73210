"""Sentences for a study of many places (data sets, settings, splits): each counts conditions instead of listing them.

A condition is one place at one batch size. Nothing is pooled over conditions: each keeps its own test.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.papers.verdicts.vocabulary import CLAIM_VERDICTS, VERDICTS
from benchmark.report.page.glance import claims_reading
from benchmark.report.tables.labels import loss_label, metric_label
from benchmark.report.tables.numbers import count, interval, mean_sd, points
from benchmark.report.tables.select import GROUP

NAMED = 3  # losses that a sentence names


def best_losses(means: pd.DataFrame, metric: str, study: Any) -> str:
    """Returns which losses were best in how many of the conditions where at least two were run.

    Every setting counts, also one that was run in a single condition. Where all conditions are batch sizes of one
    place, the scores can be compared, and the highest of them is named with its value.
    """
    groups = [group for _, group in means.groupby(GROUP, observed=True) if len(group) > 1]
    if not groups:
        places = len(means.groupby(GROUP[:3], observed=True))
        return (
            f"In none of the conditions at {count(places, 'place')} have two losses finished yet."
        )
    compared = pd.concat(groups)
    first = compared.loc[[group["mean"].idxmax() for group in groups]]
    winners = first["loss"].astype(str).value_counts()
    ranked = sorted(winners.items(), key=lambda item: (-item[1], item[0]))
    named = ", ".join(f"{loss_label(loss, study)} in {number}" for loss, number in ranked[:NAMED])
    rest = len(ranked) - NAMED
    others = f" and {count(rest, 'other setting')} in the rest" if rest > 0 else ""
    places = len(compared.groupby(GROUP[:3], observed=True))
    text = (
        f"The highest mean {metric_label(metric)} was reached by {named}{others} of {count(len(groups), 'condition')} "
        f"({'batch sizes of one place' if places == 1 else f'places times batch sizes, over {places} places'})"
    )
    if places == 1:
        top = first.loc[first["mean"].idxmax()]
        text += f"; the highest of all by {loss_label(top.loss, study)} at batch size {top.batch_size} ({value(top)})"
    return f"{text}."


def value(row: Any) -> str:
    """Returns the score of one row of means: "82.08 ± 0.51%, n=3"."""
    return f"{mean_sd(row['mean'], row['sd'])}%, n={row['n']}"


def against_baseline(tests: pd.DataFrame, metric: str, study: Any) -> list[str]:
    """Returns one sentence: how often each loss differed significantly from the baseline."""
    tested = tests[tests["p_holm"].notna()] if len(tests) else tests
    if tested.empty:
        return []
    baseline = loss_label(tested["against"].iloc[0], study)
    sure = tested["significant"].astype(str) == "True"
    conditions = len(tested.groupby(GROUP, observed=True))
    over = f"{count(len(tested), 'comparison')} in {count(conditions, 'condition')}"
    if not sure.any():
        return [
            f"Against {baseline}, after Holm's correction, no loss differs significantly in {metric_label(metric)} "
            f"({over})."
        ]
    tested = tested.assign(sure=sure, up=tested["difference"] > 0)
    counted = {
        loss: (
            int((part["sure"] & part["up"]).sum()),
            int((part["sure"] & ~part["up"]).sum()),
            len(part),
        )
        for loss, part in tested.groupby(tested["loss"].astype(str))
        if part["sure"].any()
    }
    ranked = sorted(
        counted.items(), key=lambda item: (-item[1][0] - item[1][1], -item[1][0], item[0])
    )
    parts = [
        f"{loss_label(loss, study)} ({_ways(*numbers)})" for loss, numbers in ranked[: 2 * NAMED]
    ]
    rest = len(ranked) - len(parts)
    parts += [count(rest, "further setting")] if rest > 0 else []
    left = int((~sure).sum())
    more = (
        f"; no significant difference in the other {left} of {over}" if left else f", in all {over}"
    )
    return [
        f"Significant differences to {baseline} in {metric_label(metric)} after Holm's correction, by condition: "
        f"{', '.join(parts)}{more}."
    ]


def _ways(up: int, down: int, total: int) -> str:
    """Returns "higher in 3, lower in 1, of 6", without what did not happen; "higher" for the only condition."""
    ways = [(word, number) for word, number in (("higher", up), ("lower", down)) if number]
    return (
        ways[0][0]
        if total == 1
        else ", ".join(f"{word} in {number}" for word, number in ways) + f" of {total}"
    )


def last_step(steps: pd.DataFrame, metric: str, study: Any) -> list[str]:
    """Returns one sentence on the last step of the ablation over all conditions; of a single one its own test."""
    if steps.empty or len(study.comparison.ablation) < 2:
        return []
    before, after = study.comparison.ablation[-2:]
    last = steps[steps["loss"].eq(after) & steps["against"].eq(before)]
    if last.empty:
        return []
    text = f"The step from {loss_label(before, study)} to {loss_label(after, study)} changes {metric_label(metric)} by "
    if len(last) == 1:
        return [f"{text}{step_words(next(last.itertuples()))}."]
    sure = last["significant"].astype(str) == "True"
    up, down = (
        int((sure & (last["difference"] > 0)).sum()),
        int((sure & (last["difference"] < 0)).sum()),
    )
    span = f"{points(last['difference'].min())} to {points(last['difference'].max())} points"
    ways = [f"{word} in {number}" for word, number in (("up", up), ("down", down)) if number]
    found = f"significantly {', '.join(ways)}" if ways else "significantly in none"
    return [f"{text}{span} over {len(last)} conditions, {found}."]


def step_words(row: Any) -> str:
    """Returns one test of a step: "+1.20 points [+0.80, +1.60] at batch size 32 (significant)"."""
    verdict = "significant" if str(row.significant) == "True" else "not significant"
    verdict = "no test" if pd.isna(row.p_holm) else verdict
    known_interval = "" if pd.isna(row.ci_low) else f" {interval(row.ci_low, row.ci_high)}"
    return f"{points(row.difference)} points{known_interval} at batch size {row.batch_size} ({verdict})"


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
    """Returns one sentence that counts the verdicts on the papers' claims, as far as any was judged: under their own
    conditions, or where none could be tested under them, on what was run here."""
    if table.empty:
        return []
    reading = claims_reading(table, stand_in)
    rows = table[table["reading"] == reading]
    verdicts = rows["verdict"].value_counts()
    if verdicts.drop("not_run", errors="ignore").sum() == 0:
        return []
    parts = [
        f"{verdicts[word]} {word.replace('_', ' ')}" for word in CLAIM_VERDICTS if word in verdicts
    ]
    where = f" asked of {stand_in or 'what was run here'}" if reading == "here" else ""
    never = 0 if where or "outside" not in table else int(rows["outside"].fillna("").ne("").sum())
    rest = f" ({never} of them outside of every study)" if never else ""
    return [f"Of {count(int(verdicts.sum()), 'claim')}{where}: {', '.join(parts)}{rest}."]
