"""The answer in a few sentences, computed from the results; no sentence claims more than its test."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmark.report.page import overview
from benchmark.report.page.glance import claims_reading
from benchmark.report.page.swept import sweeps
from benchmark.report.tables.inputs import Inputs
from benchmark.report.tables.labels import (
    loss_label,
    loss_order,
    metric_label,
    metric_order,
    place_label,
)
from benchmark.report.tables.numbers import count
from benchmark.report.tables.select import over_seeds, scores
from benchmark.report.tables.table import NothingToShow

SENTENCES = 4


def answer(inputs: Inputs) -> list[str]:
    """Returns at most four sentences: on the best loss, the tests against the baseline and the ablation.

    All speak of the headline metric (the first of the study that has values). Where a study has several places,
    they count conditions. Where published numbers or claims were judged, their counts come first; the counts of what
    the claims come to on other data come last, except in a study of sweeps, whose first sentences are on the claims
    and on the sweeps. With nothing finished, the one sentence says so.
    """
    try:
        values = scores(inputs.runs, inputs.study)
    except NothingToShow:
        return ["There is no answer yet: no run of this study has finished with a score."]
    metric = metric_order(values["metric"].unique(), inputs.study)[0]
    values = values[values["metric"] == metric]
    sizes = values.groupby(["dataset", "setting", "split"], observed=True).size()
    means = over_seeds(values, inputs.study.comparison.alpha)
    baseline, steps = (
        _tests(inputs, "paired", "baseline", metric),
        _tests(inputs, "ablation", "ablation", metric),
    )
    if len(sizes) > 1:
        found = [
            overview.best_losses(means, metric, inputs.study),
            *overview.against_baseline(baseline, metric, inputs.study),
            *overview.last_step(steps, metric, inputs.study),
        ]
    else:
        found = [
            _best(means, sizes.index[0], metric, inputs.study),
            *_against_baseline(baseline, metric, inputs.study),
            *_ablation(steps, metric, inputs.study),
        ]
    judged = _judged(inputs)
    if swept := sweeps(inputs.printed):
        return [*judged, *swept, *found][:SENTENCES]
    return ([*judged, *found] if _about_papers(inputs) else [*found, *judged])[:SENTENCES]


def _about_papers(inputs: Inputs) -> bool:
    """Returns whether the papers are what the results tell of, instead of other data on which claims can be asked."""
    claims, stand_in = (
        inputs.stats.get("claims", pd.DataFrame()),
        getattr(inputs.study, "stand_in", None),
    )
    as_published = len(claims) > 0 and claims_reading(claims, stand_in) == "published"
    return bool(stand_in or as_published or overview.published(inputs.stats["verdicts"]))


def _judged(inputs: Inputs) -> list[str]:
    """Returns the counts of verdicts and of claims as one sentence; none when nothing was judged."""
    found = overview.published(inputs.stats["verdicts"])
    found += overview.claims(
        inputs.stats.get("claims", pd.DataFrame()), getattr(inputs.study, "stand_in", None)
    )
    if len(found) < 2:
        return found
    first, *rest = (sentence.removesuffix(".") for sentence in found)
    return ["; ".join([first, *(text[:1].lower() + text[1:] for text in rest)]) + "."]


def _best(means: pd.DataFrame, place: tuple, metric: str, study: Any) -> str:
    parts = []
    for batch_size, group in means.groupby("batch_size", sort=True):
        ranked = group.sort_values("mean", ascending=False)
        first = ranked.iloc[0]
        text = (
            f"{loss_label(first.loss, study)} at batch size {batch_size} ({overview.value(first)}"
        )
        if len(ranked) > 1:
            second = ranked.iloc[1]
            text += f"; second {loss_label(second.loss, study)} with {overview.value(second)}"
        parts.append(text + ")")
    return f"On {place_label(*place)} the highest mean {metric_label(metric)} was reached by {_listed(parts)}."


def _tests(inputs: Inputs, name: str, kind: str, metric: str) -> pd.DataFrame:
    table = inputs.stats.get(name, pd.DataFrame())
    return table if table.empty else table[(table["kind"] == kind) & (table["metric"] == metric)]


def _against_baseline(tests: pd.DataFrame, metric: str, study: Any) -> list[str]:
    if tests.empty:
        return []
    baseline = loss_label(tests["against"].iloc[0], study)
    tested = tests[tests["p_holm"].notna()]
    if tested.empty:
        return [
            f"Nothing could be tested against {baseline}: that takes at least two common seeds."
        ]
    significant = tested["significant"].astype(str) == "True"
    sizes = sorted(tested["batch_size"].unique())
    groups = {
        "higher": tested[significant & (tested["difference"] > 0)],
        "lower": tested[significant & (tested["difference"] < 0)],
    }
    parts = [
        f"{word} for {_where(group, sizes, study)}" for word, group in groups.items() if len(group)
    ]
    text = f"Against {baseline}, after Holm's correction, {metric_label(metric)} is significantly "
    text += " and ".join(parts) if parts else "different for no loss"
    left = int(len(tested) - significant.sum())
    if left and parts:
        text += f"; {left} of {count(len(tested), 'comparison')} show no significant difference"
    return [text + "."]


def _where(group: pd.DataFrame, sizes: list[int], study: Any) -> str:
    """Returns "SupAP and ROADMAP (at every batch size) and FastAP (at 32)", losses with equal sizes together."""
    together: dict[tuple[int, ...], list[str]] = {}
    for loss in loss_order(group["loss"], study):
        found = tuple(sorted(group.loc[group["loss"] == loss, "batch_size"]))
        together.setdefault(found, []).append(loss_label(loss, study))
    parts = []
    for found, losses in together.items():
        at = (
            "at every batch size"
            if list(found) == sizes and len(sizes) > 1
            else f"at {_listed([*map(str, found)])}"
        )
        parts.append(f"{_listed(losses)}" + (f" ({at})" if len(sizes) > 1 else ""))
    return ", ".join(parts)


def _ablation(tests: pd.DataFrame, metric: str, study: Any) -> list[str]:
    if tests.empty or len(study.comparison.ablation) < 2:
        return []
    last = tests[
        tests["loss"].eq(study.comparison.ablation[-1])
        & tests["against"].eq(study.comparison.ablation[-2])
    ]
    if last.empty:
        return []
    parts = [overview.step_words(row) for row in last.sort_values("batch_size").itertuples()]
    names = [loss_label(label, study) for label in study.comparison.ablation[-2:]]
    return [
        f"The step from {names[0]} to {names[1]} changes {metric_label(metric)} by {_listed(parts)}."
    ]


def _listed(parts: list[str]) -> str:
    """Returns "a", "a and b" or "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
