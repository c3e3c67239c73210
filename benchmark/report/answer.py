"""What a reader sees first: the answer in a few sentences, counts, and reasons for caution.

No sentence claims more than its test. A condition is one dataset, setting and split at one batch
size. A ``single`` study, of one dataset, setting and split, names its batch sizes; another counts
conditions. Nothing is pooled over conditions: each keeps its own test.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

import pandas as pd

from benchmark.core.code_version import mixed
from benchmark.core.records import SEPARATOR
from benchmark.core.words import DASH, count, interval, listed, mean_sd, percent, points, words_of
from benchmark.papers.paper import THIS_SUITE, cite, vocabulary_of
from benchmark.papers.verdicts import (
    CLAIM_VERDICTS,
    INCONCLUSIVE,
    LOW,
    NOT_ASKED,
    NOT_RUN,
    VERDICTS,
    by_source,
)
from benchmark.report.inputs import CONDITION, DIVERGENCE_CELL, WHERE, Inputs, records, rows_of
from benchmark.report.labels import dataset_label, dataset_name, metric_label
from benchmark.report.table import TONES, NothingToShow
from benchmark.stats.reproduction import DRIFTED, REPRODUCED
from benchmark.study.trials import EQUAL

SENTENCES = 4
NAMED = 8  # sweeps that the sentence on them names
TERMS = {("sup_ap", "roadmap"): "The calibration term"}  # what a step of an ablation adds
NAMED_LOSSES = 3  # losses that a sentence on many conditions names
SHOWN = 12  # changes of the analysis that are named
UNFINISHED = ("failed", "stale", "missing")
STATUSES = {"ok": "finished"} | {name: name for name in ("diverged", *UNFINISHED)}


def answer(inputs: Inputs) -> list[str]:
    """Return at most four sentences on the headline metric: best loss, baseline and ablation.

    Where printed numbers were judged, they are the question: the answer goes by printed table.
    Otherwise counts of claims come first, if they were judged as published, else last; a study of
    sweeps begins with claims and sweeps.
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
    means, lost = rows_of(last, metric=metric), inputs.diverging
    cells = means[[*DIVERGENCE_CELL]].itertuples(index=False, name=None)
    # a loss that diverges is not the best, whatever its other runs score
    means = means.loc[[cell not in lost for cell in cells]]
    single = len(means.drop_duplicates(WHERE)) == 1

    own = noise_shares(inputs, metric)
    if len(means) and (not own or means["loss"].nunique() > 1):
        own.append(best_losses(means, inputs, single))
    tests = rows_of(inputs.paired, kind="baseline", metric=metric)
    steps = rows_of(inputs.ablation, kind="ablation", metric=metric)
    own += [*baseline_differences(tests, inputs, single), *last_step(steps, inputs, single)]
    numbers, claims = _published(inputs.verdicts), _claims(inputs.claims)
    if numbers:
        papers = {name.partition("/")[0] for name in inputs.study.references.published}
        of_paper = inputs.claims[inputs.claims["paper"].isin(papers)] if claims else inputs.claims
        return [*numbers, *_by_table(inputs), *_claims(of_paper)]
    if len(inputs.printed.sweeps):
        return [*claims, _sweeps(inputs.printed.sweeps), *own][:SENTENCES]
    as_published = len(inputs.claims) > 0 and claims_reading(inputs.claims) == "published"
    return ([*claims, *own] if as_published else [*own, *claims])[:SENTENCES]


def judged(table: pd.DataFrame) -> bool:
    """Return whether a verdict of a table, of numbers or claims, says anything."""
    return not table.empty and not table["verdict"].isin([NOT_RUN, NOT_ASKED]).all()


def published_of(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return the verdicts on numbers of papers, not on frozen runs of our own."""
    return verdicts if verdicts.empty else verdicts[verdicts["source"] != "frozen"]


def claims_reading(claims: pd.DataFrame) -> str:
    """Return the reading that counts: "here" where no claim could be tested as published."""
    published = claims.loc[claims["reading"] == "published", "verdict"]
    return "here" if (published == NOT_RUN).all() else "published"


def _by_verdict(table: pd.DataFrame, words: Mapping[str, str]) -> str:
    found = table["verdict"].value_counts()
    return ", ".join(f"{found[word]} {words_of(word)}" for word in words if word in found)


def _published(verdicts: pd.DataFrame) -> list[str]:
    """Return one sentence that counts the verdicts on published numbers, if any was judged."""
    rows = published_of(verdicts)
    if not judged(rows):
        return []
    return [f"Of {count(len(rows), 'published number')}: {_by_verdict(rows, VERDICTS)}."]


def _by_table(inputs: Inputs) -> list[str]:
    """Return a line for each printed table: drifts, those that stand first; then counts.

    Tables with a drift that stands come before the others, which are in the order of the print.
    """
    lines, rows = [], published_of(inputs.verdicts)
    for (source, table), part in rows.groupby(["source", "table"], sort=False):
        drifts = _drifts(part, inputs)
        counted = part["verdict"].value_counts()
        said = [f"{counted.get(REPRODUCED, 0)} of {len(part)} reproduced", *drifts[:NAMED_LOSSES]]
        more = len(drifts) - NAMED_LOSSES
        said += [count(more, "more drift")] * (more > 0)
        rest = [word for word in (INCONCLUSIVE, NOT_RUN) if word in counted]
        said += [f"{counted[word]} {words_of(word)}" for word in rest]
        stands = any(each.endswith("which stands") for each in drifts)
        lines.append((not stands, f"{cite(str(source), str(table))}: {'; '.join(said)}."))
    return [words for _, words in sorted(lines, key=itemgetter(0))]


def _drifts(part: pd.DataFrame, inputs: Inputs) -> list[str]:
    """Return "SoftBinAP on SOP lower by up to 2.1 points of R@1 and mAP@R, which stands"."""
    found, words = [], vocabulary_of(part["source"].iloc[0])
    sized, several = (part[each].nunique() > 1 for each in ("batch_size", "backbone"))
    rows = rows_of(part, verdict=DRIFTED).assign(unsure=lambda rows: ~rows["stands"].eq(True))
    keys = ["unsure", "loss", "dataset", "backbone", "setting", "batch_size", "direction"]
    ordered = rows.sort_values("unsure", kind="stable").groupby(keys, sort=False, dropna=False)
    for _, same in ordered:
        row = next(records(same))
        where = f"{inputs.label(row.loss)} on {dataset_name(row.dataset)}"
        where += f" with {words.name('backbone', row.backbone)}" if several else ""
        where += f" at batch size {row.batch_size:.0f}" if sized else ""
        most, metrics = same["difference"].abs().max(), [*map(metric_label, same["metric"])]
        by = f"{'lower' if row.direction == LOW else 'higher'} by {'up to ' * (len(same) > 1)}"
        stands = "which may not stand" if row.unsure else "which stands"
        metric = words_of(listed([*dict.fromkeys(metrics)]))
        found.append(f"{where} {by}{most:.1f} points of {metric}, {stands}")
    return found


def _claims(claims: pd.DataFrame) -> list[str]:
    """Return one sentence that counts the verdicts on the papers' claims, if any was judged."""
    reading = "" if claims.empty else claims_reading(claims)
    rows = rows_of(claims, reading=reading)
    if not judged(rows):
        return []
    where, never = " tested on what was run here", ""
    if reading == "published":
        outside = int(rows["outside"].fillna("").ne("").sum()) if "outside" in rows else 0
        where, never = "", f" ({outside} of them outside of every study)" if outside else ""
    return [f"Of {count(len(rows), 'claim')}{where}: {_by_verdict(rows, CLAIM_VERDICTS)}{never}."]


def _sweeps(swept: pd.DataFrame) -> str:
    """Return a sentence on the sweeps with a significant difference, and the furthest of each."""
    tested = swept[swept["p_holm"].notna()]
    asked = list(dict.fromkeys(tested["title"]))
    if not asked:
        needed = "at least two common seeds of a setting and its default"
        return f"No sweep could be tested: that takes {needed}."
    number = count(len(asked), "sweep")
    if len(asked) < swept["title"].nunique():
        number += " that could be tested"
    sure = tested[tested["significant"].astype(bool)]
    ordered = sure.sort_values("difference", key=abs, kind="stable")
    furthest = {row.title: row for row in records(ordered)}
    if not furthest:
        return (
            f"In none of {number} does a setting differ significantly from the default after "
            "Holm's correction."
        )
    parts = [
        f"{title} {best.value} ({points(best.difference)} points of {metric_label(best.metric)})"
        for title in asked
        if (best := furthest.get(title))
    ]
    named = [*parts[:NAMED], *[f"and {len(parts) - NAMED} more"] * (len(parts) > NAMED)]
    return (
        f"In {len(parts)} of {number} a setting differs significantly from the default after "
        f"Holm's correction; the furthest of each: {', '.join(named)}."
    )


def standing(
    ranks: pd.DataFrame, tests: pd.DataFrame, loss: str, metric: str, label: Callable[[str], str]
) -> list[str]:
    """Return where a challenger stands in the field, and whom it differs from (``paired.csv``)."""
    most, places = int(ranks["trials"].max()), []
    trials = count(most, "trial")
    for budget, rules in ((most, f"after {trials}"), (0, "with its defaults")):
        field = rows_of(ranks, trials=budget)
        row = next(records(rows_of(field, loss=loss)))
        places.append(
            f"rank {row.rank:.0f} of {len(field)} [{row.rank_low:.0f} to {row.rank_high:.0f}] "
            f"{rules} ({metric_label(metric)} {percent(row.mean)} "
            f"{interval(row.ci_low, row.ci_high, percent)})"
        )
    here = rows_of(tests, metric=metric, kind="baseline", against=loss)
    here = here[here["setting"].str.endswith(f"{SEPARATOR}{EQUAL}{most}")]
    sure = here[here["significant"].astype(bool)]
    parts = [f"not told apart from {len(here) - len(sure)}"]
    for word, some in (("above", sure["difference"] < 0), ("below", sure["difference"] > 0)):
        if names := sorted(map(label, sure.loc[some, "loss"])):
            more = len(names) - NAMED
            named = [*names[:NAMED], *[count(more, "other")] * (more > 0)]
            parts.insert(0, f"significantly {word} {listed(named)}")
    return [
        f"{label(loss)} has {listed(places)}.",
        f"After {trials} it is {', '.join(parts)} of the {len(here)} others.",
    ]


def budget_answer(inputs: Inputs) -> list[str]:
    """Return the answer of a study at equal budgets: the order under both rule sets, the gains."""
    ranks, gaps = inputs.some("budget_ranks"), inputs.some("budget_gaps")
    most, metric = ranks["trials"].max(), metric_label(inputs.headline)
    sentences, baseline = [], inputs.study.comparison.baseline
    if inputs.study.references.field:
        sentences = standing(ranks, inputs.paired, baseline, inputs.headline, inputs.label)
    for dataset, part in ranks.groupby("dataset", sort=False):
        where = f"On {dataset_name(str(dataset))} "
        for budget, rules in ((most, f"after {count(int(most), 'trial')}"), (0, "as published")):
            here = part[part["trials"] == budget].sort_values("rank")
            first = here.iloc[0]
            level = here[here["rank_low"] <= 1.0]["loss"].iloc[1:]
            also = f"; {count(len(level), 'other')} may be first as well" if len(level) else ""
            name = inputs.label(first["loss"])
            sentences.append(
                f"{where}{name} is first of {len(here)} {rules}: {metric} {percent(first['mean'])} "
                f"[{percent(first['ci_low'])}, {percent(first['ci_high'])}]{also}."
            )
        both = part.pivot(index="loss", columns="trials", values="mean")
        tau = both[0].corr(both[most], method="kendall")
        tests = gaps[(gaps["dataset"] == dataset) & (gaps["trials"] == most)]
        sure = tests[tests["significant"].astype(bool)]
        sentences.append(
            f"Trials change the score of a loss by {points(tests['difference'].median())} points "
            f"in the median, significantly up for {(sure['difference'] > 0).sum()} and down for "
            f"{(sure['difference'] < 0).sum()} of {len(tests)}; Kendall's tau between the two "
            f"orders is {tau:.2f}."
        )
    return sentences


def best_losses(means: pd.DataFrame, inputs: Inputs, single: bool) -> str:
    """Return which losses have the highest mean of one metric (rows of ``summary.csv``).

    Over many conditions, a loss counts where at least two were run. Where all are batch sizes of
    one setting, scores compare, and the highest stands with its value.
    """
    metric = metric_label(means["metric"].iloc[0])

    def score(row: Any) -> str:
        return f"{mean_sd(row.mean, row.sd)}%, n={row.n}"

    if single:
        parts = []
        for batch_size, group in means.groupby("batch_size"):
            first = next(records(group.nlargest(1, "mean")))
            name = inputs.label(first.loss)
            parts.append(f"{name} at batch size {batch_size} ({score(first)})")
        where = dataset_label(*means[WHERE].iloc[0])
        words = f"On {where} the highest mean {metric} was reached by {listed(parts)}"
        return f"{words}{_from_least_to_most(means, inputs)}."
    compared = means[means.groupby(CONDITION)["loss"].transform("size") > 1]
    places = len(compared.drop_duplicates(WHERE))
    if not places:
        places = len(means.drop_duplicates(WHERE))
        return f"In none of the conditions of {count(places, 'setting')} have two losses finished."
    best = compared.loc[compared.groupby(CONDITION)["mean"].idxmax()]
    wins: list[tuple[Any, int]] = [*best["loss"].value_counts().items()]
    ranked = sorted(wins, key=lambda item: (-item[1], item[0]))
    named = [f"{inputs.label(loss)} in {number}" for loss, number in ranked[:NAMED_LOSSES]]
    more = len(ranked) - NAMED_LOSSES
    others = f" and {count(more, 'other loss')} in the rest" if more > 0 else ""
    kind = "batch sizes" if places == 1 else f"batch sizes of {places} datasets and settings"
    text = (
        f"The highest mean {metric} was reached by {', '.join(named)}{others} of "
        f"{count(len(best), 'condition')} ({kind})"
    )
    if places == 1:
        top = next(records(best.nlargest(1, "mean")))
        name = inputs.label(top.loss)
        text += f"; the highest of all by {name} at batch size {top.batch_size} ({score(top)})"
    return f"{text}."


def _from_least_to_most(means: pd.DataFrame, inputs: Inputs) -> str:
    """Return how the smallest and the largest batch size differ, "" where there is only one."""
    wide = means.pivot(index="loss", columns="batch_size", values="mean")
    change = (wide.iloc[:, -1] - wide.iloc[:, 0]).dropna().sort_values()
    if len(wide.columns) == 1 or change.empty:
        return ""
    parts = []
    for word, some in (("rises", change[change > 0][::-1]), ("falls", change[change <= 0])):
        named = [f"{inputs.label(str(loss))} ({points(by)})" for loss, by in some.items()]
        if len(some) > NAMED_LOSSES:
            ends = f"{points(some.iloc[-1])} to {points(some.iloc[0])}"
            named = [f"{len(some)} losses ({ends} points)"]
        parts += [f"{word} for {listed(named)}"] if named else []
    metric = metric_label(means["metric"].iloc[0])
    return f"; from {wide.columns[0]} to {wide.columns[-1]} {metric} {' and '.join(parts)}"


def noise_shares(inputs: Inputs, metric: str) -> list[str]:
    """Return for each loss of a square which share of the variance each source makes."""
    sentences = []
    own = rows_of(inputs.noise, metric=metric)
    for _, group in own.groupby([*CONDITION, "loss"], sort=False) if len(own) else ():
        first, *_ = rows = list(records(group))
        parts = [
            f"{row.source} {100 * row.share:.0f}% [{100 * row.low:.0f}, {100 * row.high:.0f}]"
            for row in rows
        ]
        where = dataset_label(first.dataset, first.setting, first.split)
        loss, runs = inputs.label(first.loss), count(int(first.runs), "run")
        sentences.append(
            f"Shares of the variance of {metric_label(metric)} over {runs} of {loss} "
            f"({where}, batch size {first.batch_size}): "
            f"{listed(parts)}. Interaction is what sources do only together."
        )
    return sentences


def baseline_differences(tests: pd.DataFrame, inputs: Inputs, single: bool) -> list[str]:
    """Return one sentence: which losses differ significantly from the baseline, and where."""
    if tests.empty:
        return []
    baseline = inputs.label(tests["against"].iloc[0])
    metric = metric_label(tests["metric"].iloc[0])
    tests = tests[tests["p_holm"].notna()]
    if tests.empty:
        text = f"Nothing could be tested against {baseline}: that takes at least two common seeds."
        return [text] * single
    sure = tests[tests["significant"]]
    conditions = count(len(tests.drop_duplicates(CONDITION)), "condition")
    number, left = count(len(tests), "comparison"), len(tests) - len(sure)
    over = f"{number} in {conditions}"
    if sure.empty:
        return [
            f"Against {baseline}, after Holm's correction, no loss differs significantly in "
            f"{metric} ({over})."
        ]
    higher, lower = sure[sure["difference"] > 0], sure[sure["difference"] < 0]
    if single:
        sizes = sorted(tests["batch_size"].unique())
        ways = " and ".join(
            f"{word} for {_by_batch_size(group, sizes, inputs)}"
            for word, group in (("higher", higher), ("lower", lower))
            if len(group)
        )
        rest = f"; {left} of {number} show no significant difference" if left else ""
        return [
            f"Against {baseline}, after Holm's correction, {metric} is significantly {ways}{rest}."
        ]
    ups, downs, total = (each["loss"].value_counts() for each in (higher, lower, tests))
    counts = {loss: (ups.get(loss, 0), downs.get(loss, 0)) for loss in sure["loss"]}
    ranked = sorted(counts, key=lambda loss: (-sum(counts[loss]), -counts[loss][0], loss))
    parts = []
    for loss in ranked[: 2 * NAMED_LOSSES]:
        words = [(word, n) for word, n in zip(("higher", "lower"), counts[loss], strict=True) if n]
        text = ", ".join(f"{word} in {n}" for word, n in words) + f" of {total[loss]}"
        parts.append(f"{inputs.label(loss)} ({words[0][0] if total[loss] == 1 else text})")
    if more := len(ranked) - len(parts):
        parts.append(count(more, "further setting"))
    rest = f"; no significant difference in the other {left} of {over}" if left else ""
    return [
        f"Significant differences to {baseline} in {metric} after Holm's correction, by "
        f"condition: {', '.join(parts)}{rest or f', in all {over}'}."
    ]


def _by_batch_size(group: pd.DataFrame, sizes: list[int], inputs: Inputs) -> str:
    """Return "SupAP and ROADMAP (at every batch size), FastAP (at 32)"."""
    together: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for loss in inputs.losses(group["loss"]):
        at = sorted(group.loc[group["loss"] == loss, "batch_size"])
        together[tuple(at)].append(inputs.label(loss))
    if len(sizes) == 1:
        return listed([name for names in together.values() for name in names])
    return ", ".join(
        f"{listed(names)} (at "
        + ("every batch size)" if [*at] == sizes else f"{listed([*map(str, at)])})")
        for at, names in together.items()
    )


def last_step(steps: pd.DataFrame, inputs: Inputs, single: bool) -> list[str]:
    """Return one sentence on the last step of the ablation: each test, or their range over many."""
    ablation = inputs.study.comparison.ablation
    if steps.empty or len(ablation) < 2:
        return []
    before, after = ablation[-2:]
    last = steps[steps["loss"].eq(after) & steps["against"].eq(before)]
    if last.empty:
        return []
    step = f"from {inputs.label(before)} to {inputs.label(after)}"
    step = f"{TERMS[before, after]} ({step})" if ablation[-2:] in TERMS else f"The step {step}"
    text = f"{step} changes {metric_label(last['metric'].iloc[0])} by "
    if single or len(last) == 1:
        parts = []
        for row in records(last.sort_values("batch_size")):
            verdict = "significant" if row.significant else "not significant"
            verdict = "no test" if pd.isna(row.p_holm) else verdict
            span = f" {interval(row.ci_low, row.ci_high)}".removesuffix(f" {DASH}")
            change = f"{points(row.difference)} points{span}"
            parts.append(f"{change} at batch size {row.batch_size} ({verdict})")
        return [f"{text}{listed(parts)}."]
    sure = last.loc[last["significant"], "difference"]
    ways = {"up": (sure > 0).sum(), "down": (sure < 0).sum()}
    where = ", ".join(f"{word} in {number}" for word, number in ways.items() if number)
    span = f"{points(last['difference'].min())} to {points(last['difference'].max())} points"
    return [f"{text}{span} over {len(last)} conditions, significantly {where or 'in none'}."]


class Count(NamedTuple):
    """How often a word occurs, and what it means."""

    name: str
    number: int
    tone: str
    meaning: str = ""


def counts(inputs: Inputs) -> list[tuple[str, str, list[Count]]]:
    """Return (heading, label, counts) of runs by status, and of judged numbers and claims."""
    found = inputs.runs["status"].value_counts()
    runs = [
        Count(f"{name} {'run' if number == 1 else 'runs'}", number, TONES[status])
        for status, name in STATUSES.items()
        if (number := int(found.get(status, 0))) or status == "ok"
    ]
    shown, claims = [("Runs", "Runs by status", runs)], inputs.claims
    if not inputs.verdicts.empty:
        shown += [
            (heading, heading, _counts(words, meanings))
            for heading, words, meanings in by_source(inputs.verdicts)
        ]
    if judged(claims):
        reading, suite = claims_reading(claims), claims["paper"].str.startswith(THIS_SUITE).any()
        here = "under their own conditions" if reading == "published" else ""
        whose = f"Claims of the papers{' and of this study' if suite else ''}"
        heading = f"{whose}, {here or 'tested on what was run here'}"
        rows = claims.loc[claims["reading"] == reading, "verdict"]
        shown.append((heading, heading, _counts(rows, CLAIM_VERDICTS)))
    return shown


def _counts(words: pd.Series, meanings: Mapping[str, str]) -> list[Count]:
    found = words.value_counts()
    return [
        Count(words_of(word), int(found.get(word, 0)), TONES[word], meaning)
        for word, meaning in meanings.items()
    ]


def notices(inputs: Inputs) -> list[str]:
    """Return every reason for caution, the gravest first; none for a complete, uniform study."""
    finished, found = rows_of(inputs.runs, status="ok"), [*_unfinished(inputs)]
    # a whole dataset and setting may lack a metric
    cell = ["dataset", "setting"]
    runs = finished.groupby(cell)["run_id"].nunique()
    for metric in inputs.study.metrics if len(finished) else ():
        having = rows_of(inputs.scores, metric=metric).groupby(cell)["run_id"].nunique()
        if having.empty:
            found.append(f"No finished run has {metric_label(metric)}, which the study needs.")
        elif lacking := int((runs.reindex(having.index) - having).sum()):
            found.append(
                f"{count(lacking, 'finished run')} without a value of {metric_label(metric)}: its "
                "means, tests and figures are those of the others."
            )
    seeds = finished.groupby([*DIVERGENCE_CELL])["seed"].nunique()
    if len(seeds) and seeds.max() == 1:
        found.append(
            "One seed only: there is no spread, no interval and no test, so no difference can be "
            "judged."
        )
    for label, data in inputs.provenance.get("datasets", {}).items():
        if which := data.get("which_counts"):
            found.append(f"{dataset_name(label)}: {which}.")
    recorded = [*inputs.provenance.get("errors", []), *inputs.provenance.get("warnings", [])]
    found += [f"{text[:1].upper()}{text[1:]}." for text in recorded]
    if not recorded:
        parts = {"code_version": "code versions", "platform": "platforms", "kernels": "kernels"}
        for column, what in parts.items():
            versions = sorted({str(value) for value in finished[column] if value})
            if mixed(versions):
                found.append(f"Runs of different {what}: {', '.join(versions)}.")
    if inputs.made_up:
        found.insert(
            0,
            f"Made up: nothing was trained for {inputs.made_up} of {count(len(inputs.runs), 'run')}"
            ", whose scores were drawn. Nothing on this page says anything of a loss or a paper.",
        )
    return [*found, *_of_references(inputs)]


def _unfinished(inputs: Inputs) -> Iterator[str]:
    runs = inputs.runs
    if runs.empty:
        yield "No run is recorded for this study: its grid is empty, or nothing was collected yet."
        return
    if unfinished := int(runs["status"].isin(UNFINISHED).sum()):
        yield (
            f"Partial results: {unfinished} of {count(len(runs), 'run')} have no usable result. "
            "Means, tests and figures use the finished runs only and can change."
        )
    if diverged := int((runs["status"] == "diverged").sum()):
        number = count(diverged, "run")
        yield f"{number} diverged. They are results, listed below, and enter no mean."
    if diverging := sorted(inputs.diverging):
        names = [
            f"{inputs.label(loss)} ({dataset_name(dataset)}, batch size {size})"
            for dataset, _, size, loss in diverging
        ]
        yield (
            f"Losses that diverge in significantly more than one run of ten: {listed(names)}. They "
            "lose their comparisons, whatever their other runs score."
        )


def _of_references(inputs: Inputs) -> Iterator[str]:
    """Yield notes where no number was measured as published, and on looks and changes."""
    verdicts, state = inputs.verdicts, inputs.registered
    published = published_of(verdicts)
    if len(published) and (published["verdict"] == NOT_RUN).all():
        datasets = [dataset_name(label) for label in sorted(inputs.runs["dataset"].unique())]
        yield (
            "Stand-in data: none of the published numbers was measured here, because their "
            f"datasets were not run. What {listed(datasets) if datasets else 'this study'} shows "
            "answers the same questions on other data and is no reproduction."
        )
    if number := 0 if verdicts.empty else int(verdicts["interim"].sum()):
        words = "Interim: not all seeds of this look have ended, so nothing is final for"
        yield f"{words} {count(number, 'reference number')}."
    if state and state.changes:
        shown = [*state.changes[:SHOWN], *["and more"] * (len(state.changes) > SHOWN)]
        yield f"{state.words} {'; '.join(shown)}."
