"""The answer in a few sentences, made of the results."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from benchmark.papers.printed.sweeps import SweptValue
from benchmark.papers.verdicts.vocabulary import CLAIM_VERDICTS, NOT_ASKED, NOT_RUN, VERDICTS
from benchmark.report.budgets import budget_answer
from benchmark.report.inputs import DIVERGENCE_CELL, WHERE, Inputs
from benchmark.report.labels import metric_label
from benchmark.report.numbers import count, points, words_of
from benchmark.report.page.counts import claims_reading
from benchmark.report.page.sentences import (
    baseline_differences,
    best_losses,
    last_step,
    noise_shares,
)
from benchmark.report.render.table import NothingToShow

SENTENCES = 4
NAMED = 8  # sweeps that the sentence on them names


def answer(inputs: Inputs) -> list[str]:
    """Return at most four sentences: on the best loss, the baseline and the ablation.

    All speak of the headline metric. Where published numbers or claims were judged, their counts
    come first; the counts of claims on other data come last, except in a study of sweeps, whose
    first sentences are on the claims and on the sweeps.
    """
    try:
        metric, last = inputs.headline, inputs.last
    except NothingToShow:
        return ["There is no answer yet: no run of this study has finished with a score."]
    if inputs.budgets:
        return budget_answer(inputs)
    means = last[last["metric"] == metric]
    cells = means[[*DIVERGENCE_CELL]].itertuples(index=False)
    lost = inputs.diverging  # a loss that diverges is not the best, whatever its other runs score
    study, means = inputs.study, means.loc[[tuple(cell) not in lost for cell in cells]]
    single = len(means.drop_duplicates(WHERE)) == 1
    noise = noise_shares(inputs.noise, metric, study)
    compared = len(means) and (not noise or means["loss"].nunique() > 1)
    own = [
        *noise,
        *([best_losses(means, study, single)] if compared else []),
        *baseline_differences(_tests(inputs, "baseline", metric), study, single),
        *last_step(_tests(inputs, "ablation", metric), study, single),
    ]
    numbers, claims = _published(inputs.verdicts), _claims(inputs)
    judged = [*numbers, *claims]
    if len(judged) == 2:
        second = judged[1]
        judged = [f"{judged[0].removesuffix('.')}; {second[:1].lower()}{second[1:]}"]
    if swept := _sweeps(inputs.printed.sweeps):
        return [*judged, *swept, *own][:SENTENCES]
    as_published = len(inputs.claims) > 0 and claims_reading(inputs) == "published"
    about_papers = inputs.study.stand_in or as_published or numbers
    return ([*judged, *own] if about_papers else [*own, *judged])[:SENTENCES]


def _tests(inputs: Inputs, kind: str, metric: str) -> pd.DataFrame:
    try:
        tests = inputs.tests(kind)
    except NothingToShow:
        return pd.DataFrame()
    return tests[tests["metric"] == metric]


def _published(verdicts: pd.DataFrame) -> list[str]:
    """Return one sentence that counts the verdicts on published numbers, if any was judged."""
    if verdicts.empty:
        return []
    counts = verdicts.loc[verdicts["source"] != "frozen", "verdict"].value_counts()
    if not counts.drop(NOT_RUN, errors="ignore").sum():
        return []
    parts = [f"{counts[word]} {words_of(word)}" for word in VERDICTS if word in counts]
    return [f"Of {count(int(counts.sum()), 'published number')}: {', '.join(parts)}."]


def _claims(inputs: Inputs) -> list[str]:
    """Return one sentence that counts the verdicts on the papers' claims, if any was judged."""
    if inputs.claims.empty:
        return []
    reading = claims_reading(inputs)
    rows = inputs.claims[inputs.claims["reading"] == reading]
    counts = rows["verdict"].value_counts()
    if not counts.drop([NOT_RUN, NOT_ASKED], errors="ignore").sum():
        return []
    parts = [f"{counts[word]} {words_of(word)}" for word in CLAIM_VERDICTS if word in counts]
    where, never = f" asked of {inputs.study.stand_in or 'what was run here'}", ""
    if reading == "published":
        outside = int(rows["outside"].fillna("").ne("").sum()) if "outside" in rows else 0
        where, never = "", f" ({outside} of them outside of every study)" if outside else ""
    return [f"Of {count(int(counts.sum()), 'claim')}{where}: {', '.join(parts)}{never}."]


def _sweeps(swept: Sequence[SweptValue]) -> list[str]:
    """Return one sentence: the sweeps with a value that differs significantly from the default.

    Of several such values of a sweep the one that differs most is given.
    """
    titles = {each.title for each in swept}
    tested = [each for each in swept if each.p_holm is not None]
    if not tested:
        needed = "at least two common seeds of a setting and its default"
        return [f"No sweep could be tested: that takes {needed}."] * bool(titles)
    number = count(len({each.title for each in tested}), "sweep")
    number += " that could be tested" if len({each.title for each in tested}) < len(titles) else ""
    furthest: dict[str, SweptValue] = {}
    for each in sorted(tested, key=_size):
        if each.significant:
            furthest[each.title] = each
    if not furthest:
        return [
            f"In none of {number} does a setting differ significantly from the default after "
            "Holm's correction."
        ]
    parts = [
        f"{title} {best.value} ({points(best.difference)} points of {metric_label(best.metric)})"
        for title in dict.fromkeys(each.title for each in tested)
        if (best := furthest.get(title))
    ]
    told = ", ".join([*parts[:NAMED], *[f"and {len(parts) - NAMED} more"] * (len(parts) > NAMED)])
    return [
        f"In {len(parts)} of {number} a setting differs significantly from the default after "
        f"Holm's correction; the furthest of each: {told}."
    ]


def _size(value: SweptValue) -> float:
    return abs(value.difference or 0.0)
