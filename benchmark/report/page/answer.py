"""What a reader sees first: the answer in a few sentences, and the counts of runs and verdicts."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from benchmark.papers.library import THIS_SUITE
from benchmark.papers.printed.sweeps import SweptValue
from benchmark.papers.verdicts.vocabulary import (
    CLAIM_VERDICTS,
    NOT_ASKED,
    NOT_RUN,
    VERDICTS,
)
from benchmark.report.inputs import DIVERGENCE_CELL, WHERE, Inputs, records
from benchmark.report.labels import dataset_name, loss_label, metric_label
from benchmark.report.numbers import count, percent, points, words_of
from benchmark.report.page.sentences import (
    baseline_differences,
    best_losses,
    last_step,
    noise_shares,
)
from benchmark.report.pairs import is_true
from benchmark.report.render.table import TONES, NothingToShow

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
        try:
            return budget_answer(inputs)
        except NothingToShow as reason:
            return [f"There is no answer yet: {reason}."]
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
    about_papers = as_published or numbers
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
    if not counts.drop([NOT_RUN, NOT_ASKED], errors="ignore").sum():
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
    where, never = " asked of what was run here", ""
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


STATUSES = ("ok", "diverged", "failed", "stale", "missing")


class Count(NamedTuple):
    """How often a word occurs, and what it means."""

    name: str
    number: int
    tone: str
    meaning: str = ""


def run_counts(inputs: Inputs) -> list[Count]:
    """Return the number of runs by status; that of finished runs is always there."""
    counts = inputs.runs["status"].value_counts()
    found = [status for status in STATUSES if status in counts or status == "ok"]
    return [Count(status, int(counts.get(status, 0)), TONES[status]) for status in found]


def verdict_counts(inputs: Inputs) -> list[Count]:
    """Return the number of reference numbers by verdict; none without references."""
    words = inputs.verdicts.get("verdict", pd.Series(dtype=str))
    return [] if words.empty else _counts(words, VERDICTS)


def claim_counts(inputs: Inputs) -> list[Count]:
    """Return the number of the papers' claims by verdict; none when none was judged."""
    table = inputs.claims
    if table.empty or table["verdict"].isin([NOT_RUN, NOT_ASKED]).all():
        return []
    return _counts(table.loc[table["reading"] == claims_reading(inputs), "verdict"], CLAIM_VERDICTS)


def claims_heading(inputs: Inputs) -> str:
    """Return which question the counts of claims answer; empty without claims."""
    if inputs.claims.empty:
        return ""
    whose = "Claims of the papers"
    if inputs.claims["paper"].str.startswith(THIS_SUITE).any():
        whose += " and of this study"
    if claims_reading(inputs) == "published":
        return f"{whose}, under their own conditions"
    return f"{whose}, asked of what was run here"


def claims_reading(inputs: Inputs) -> str:
    """Return the reading of the claims that counts: "published" or "here".

    It is "here" where no claim could be tested under its paper's conditions.
    """
    published = inputs.claims.loc[inputs.claims["reading"] == "published", "verdict"]
    return "here" if (published == NOT_RUN).all() else "published"


def _counts(verdicts: pd.Series, meanings: Mapping[str, str]) -> list[Count]:
    counts = verdicts.value_counts()
    return [
        Count(words_of(word), int(counts.get(word, 0)), TONES[word], meaning)
        for word, meaning in meanings.items()
    ]


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
                f"{where}{name} is first of {len(here)} {rules}: {metric} {percent(first['mean'])} "
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
