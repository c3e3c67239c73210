"""What a reader sees first: the answer in a few sentences, and the counts of runs and verdicts.

No sentence claims more than its test. A condition is one dataset, setting and split at one batch
size. A ``single`` study, of one dataset, setting and split, names its batch sizes; another counts
conditions. Nothing is pooled over conditions: each keeps its own test.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from benchmark.papers.marks import SweptValue
from benchmark.papers.paper import THIS_SUITE
from benchmark.papers.verdicts import (
    CLAIM_VERDICTS,
    NOT_ASKED,
    NOT_RUN,
    VERDICTS,
)
from benchmark.report.inputs import CONDITION, DIVERGENCE_CELL, WHERE, Inputs, records
from benchmark.report.labels import (
    dataset_label,
    dataset_name,
    loss_label,
    loss_order,
    metric_label,
)
from benchmark.report.numbers import (
    DASH,
    count,
    interval,
    listed,
    mean_sd,
    percent,
    points,
    words_of,
)
from benchmark.report.pairs import is_true
from benchmark.report.table import TONES, NothingToShow
from benchmark.study import Study

SENTENCES = 4
NAMED = 8  # sweeps that the sentence on them names
STATUSES = ("ok", "diverged", "failed", "stale", "missing")
NAMED_LOSSES = 3  # losses that a sentence on many conditions names


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
    where, never = " tested on what was run here", ""
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
    return f"{whose}, tested on what was run here"


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
    named = ", ".join(
        f"{loss_label(loss, study)} in {number}" for loss, number in ranked[:NAMED_LOSSES]
    )
    rest = len(ranked) - NAMED_LOSSES
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
    for loss in ranked[: 2 * NAMED_LOSSES]:
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
