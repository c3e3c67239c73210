"""The sentences that open the page, in the order in which a study asks.

What the tests say comes before the highest mean, and no sentence claims more than its test. A
condition of runs is one dataset, setting and split at one batch size; nothing is pooled over
conditions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from benchmark.core.records import Setting
from benchmark.core.words import DASH, count, first_of, interval, listed, mean_sd, percent, points
from benchmark.report.answer_of_trials import OF_HEADS, answer_of_trials, of_heads
from benchmark.report.labels import dataset_label, dataset_name, metric_label
from benchmark.report.row_types import NoiseRow, PairRow, RankedRow, ScoreRow, SweptRow
from benchmark.report.study_results import CONDITION, WHERE, StudyResults, records, rows_of
from benchmark.report.table import NothingToShow
from benchmark.report.tally import claims_in_words, claims_reading, of_own_papers, published_numbers

# What a step of an ablation adds, where it has a name.
TERMS = {("sup_ap", "roadmap"): "The calibration term"}
NAMED_LOSSES = 3  # in a sentence; more are counted
NAMED_SWEEPS = 8
NAMED_HEADS = 12
DECIDED = ["yes", "no, lower", "no, it diverges"]
OUTCOMES = [*DECIDED, "not shown", "not tested"]


@dataclass(frozen=True)
class Asked:
    """What the sentences are about: the results of the headline metric.

    means       rows of ``summary`` after the last epoch; a loss that diverges has none
    tests       the one family of tests that answers, each with its ``outcome`` of ``OUTCOMES``:
                the ablation's, else those with the baseline
    last_step   tests of the ablation's last step, where it has two steps or more
    """

    inputs: StudyResults
    metric: str

    @cached_property
    def means(self) -> pd.DataFrame:
        rows = rows_of(self.inputs.last, metric=self.metric)
        return rows[~self.inputs.diverges(rows)]

    @cached_property
    def steps(self) -> pd.DataFrame:
        return rows_of(self.inputs.ablation, kind="ablation", metric=self.metric)

    @cached_property
    def tests(self) -> pd.DataFrame:
        if self.steps.empty:
            tests = rows_of(self.inputs.paired, kind="baseline", metric=self.metric)
        else:
            tests = rows_of(self.steps, against=self.inputs.study.comparison.ablation[0])
        return with_outcomes(tests)

    @cached_property
    def last_step(self) -> pd.DataFrame:
        ablation = self.inputs.study.comparison.ablation
        if len(ablation) < 3:
            return self.steps.iloc[:0]
        return rows_of(self.steps, loss=ablation[-1], against=ablation[-2])

    @cached_property
    def one_place(self) -> bool:
        """Whether all runs are of one dataset, setting and split, and differ in batch size."""
        return len(self.means.drop_duplicates(WHERE)) == 1


def answer(inputs: StudyResults) -> list[str]:
    """Return the answer on the headline metric, a sentence or two for each question."""
    try:
        asked = Asked(inputs, inputs.headline)
        if inputs.budgets:
            return [text for text in answer_of_trials(inputs) if text]
        return [text for text in _answers(asked) if text]
    except NothingToShow as reason:
        return [f"There is no answer yet: {reason}."]


def _answers(asked: Asked) -> Iterator[str]:
    """Yield the sentences in the order in which they are read; an empty one is left out.

    The study's own tests are its question where no printed number was judged.
    """
    inputs = asked.inputs
    published = published_numbers(inputs.verdicts)
    own_claims = of_own_papers(inputs)
    has_sweeps = not published and len(inputs.printed.sweeps) > 0
    judged_as_published = len(inputs.claims) > 0 and claims_reading(inputs.claims) == "published"
    claims_first = has_sweeps or (not published and judged_as_published)
    yield published
    if claims_first:
        yield claims_in_words(own_claims)
    if has_sweeps:
        yield sweeps(asked)
    if len(inputs.noise):
        yield noise_shares(asked)
    if not published and asked.means["loss"].nunique() > 1:
        if len(asked.tests):
            yield gains(asked)
        if len(asked.last_step):
            yield last_step(asked)
        if asked.one_place:
            yield batch_sizes(asked)
        yield highest_means(asked)
        if of_heads(inputs.study):
            yield order_of_heads(asked)
    if not claims_first:
        yield claims_in_words(own_claims)


def gains(asked: Asked) -> str:
    """Answer whether losses beat the one that they are compared with, by batch size."""
    tests = asked.tests
    inputs = asked.inputs
    losses = inputs.losses(tests["loss"])
    against = inputs.label(tests["against"].iloc[0])
    question = f"Does a loss beat {against}?"
    if len(losses) <= NAMED_LOSSES:
        verb = "Does" if len(losses) == 1 else "Do"
        question = f"{verb} {listed([inputs.label(loss) for loss in losses])} beat {against}?"
    found = _by_batch_size(asked) if asked.one_place else _by_loss(asked, losses)
    return f"{question} {found}. {_family(tests)}"


def _family(tests: pd.DataFrame) -> str:
    """Return which tests answer: "Tests: paired by seed, Holm over the 6 of the ablation."."""
    name = "of the ablation" if tests["kind"].iloc[0] == "ablation" else "with the baseline"
    size = tests["family_size"].max()
    if pd.isna(size) or size == 0:
        return "A test needs at least two common seeds."
    return f"Tests: paired by seed, Holm over the {size:.0f} {name}."


def _by_batch_size(asked: Asked) -> str:
    """Return "At batch size 32 yes (+3.7 and +2.4 points of R@1), at 128 not shown"."""
    said: dict[str, list[str]] = {}
    for batch_size, tests in asked.tests.groupby("batch_size"):
        said.setdefault(_outcome(tests, asked), []).append(str(batch_size))
    parts: list[str] = []
    for words, sizes in said.items():
        where = f"at {listed(sizes)}"
        if not parts:
            where = f"At {'batch size' if len(sizes) == 1 else 'batch sizes'} {listed(sizes)}"
        parts.append(f"{where} {words}")
    return ", ".join(parts)


def with_outcomes(tests: pd.DataFrame) -> pd.DataFrame:
    """Return tests with an ``outcome`` of ``OUTCOMES`` each: whether its loss is higher."""
    if tests.empty:
        return tests
    outcome_where = {
        "no, it diverges": tests["lost"] == tests["loss"],
        "yes": tests["lost"] == tests["against"],
        "not tested": tests["p_holm"].isna(),
        "not shown": ~tests["significant"].astype(bool),
        "no, lower": tests["difference"] <= 0,
    }
    outcome = np.select([*outcome_where.values()], [*outcome_where], "yes")
    return tests.assign(outcome=outcome)


def _outcome(tests: pd.DataFrame, asked: Asked) -> str:
    """Return the outcome of the tests at one batch size; losses are named where it differs."""
    unit = f"points of {metric_label(asked.metric)}"
    together = tests["outcome"].nunique() == 1
    parts = []
    for outcome in OUTCOMES:
        rows = rows_of(tests, outcome=outcome)
        if rows.empty:
            continue
        few = len(rows) <= NAMED_LOSSES
        sizes = ""
        if outcome in ("yes", "no, lower"):
            shown = [points(value, 1) for value in rows["difference"]]
            if not few:
                least = rows["difference"].min()
                most = rows["difference"].max()
                shown = [f"{points(least, 1)} to {points(most, 1)}"]
            sizes = f" ({listed(shown)} {unit})"
            unit = "points"
        names = ""
        if not together:
            labels = [asked.inputs.label(loss) for loss in asked.inputs.losses(rows["loss"])]
            names = f"{listed(labels) if few else count(len(rows), 'loss')} "
        parts.append(f"{names}{outcome}{sizes}")
    return parts[0] if together else f"{', '.join(parts[:-1])}, {parts[-1]}"


def _by_loss(asked: Asked, losses: Sequence[str]) -> str:
    """Return "SupAP yes in 5 of 9 conditions; ROADMAP in 7, lower in 1", the most first."""
    tests = asked.tests
    counts = pd.crosstab(tests["loss"], tests["outcome"])
    counts = counts.reindex(index=list(losses), columns=OUTCOMES, fill_value=0)
    counts = counts.sort_values("yes", ascending=False, kind="stable")
    conditions = len(tests.drop_duplicates(CONDITION))
    differing = counts[counts[DECIDED].any(axis=1)]
    if differing.empty:
        return "Not shown" if conditions == 1 else f"Not shown in any of {conditions} conditions"
    parts = []
    for loss, row in differing.head(NAMED_LOSSES).iterrows():
        ways = [f"{outcome} in {row[outcome]}" for outcome in DECIDED if row[outcome]]
        found = f"{' and '.join(ways)} of {row.sum()}"
        if row.sum() == 1:
            found = ways[0].removesuffix(" in 1")
        parts.append(f"{asked.inputs.label(str(loss))} {found}")
    if len(differing) > NAMED_LOSSES:
        more = differing.iloc[NAMED_LOSSES:]
        of_more = f"yes in {more['yes'].sum()} of {more.to_numpy().sum()} comparisons"
        parts.append(f"{count(len(more), 'other loss')} {of_more}")
    if len(differing) < len(counts):
        parts.append(f"{count(len(counts) - len(differing), 'loss')} in none")
    return f"{'; '.join(parts)} (of {count(conditions, 'condition')})"


def last_step(asked: Asked) -> str:
    """Return what the last step of the ablation changes: each test, or the range over many."""
    tests = asked.last_step
    inputs = asked.inputs
    before, after = inputs.study.comparison.ablation[-2:]
    step = f"from {inputs.label(before)} to {inputs.label(after)}"
    term = TERMS.get((before, after))
    subject = f"The step {step}" if term is None else f"{term} ({step})"
    subject = f"{subject} changes {metric_label(asked.metric)} by"
    if asked.one_place or len(tests) == 1:
        parts = []
        for test in records(tests.sort_values("batch_size"), PairRow):
            significance = "significant" if test.significant else "not significant"
            if pd.isna(test.p_holm):
                significance = "no test"
            change = f"{_tenths(test.difference)} points"
            span = interval(test.ci_low, test.ci_high, _tenths)
            if span != DASH:
                change = f"{change} {span}"
            parts.append(f"{change} at batch size {test.batch_size} ({significance})")
        return f"{subject} {listed(parts)}."
    sure = tests.loc[tests["significant"], "difference"]
    ups = int((sure > 0).sum())
    downs = int((sure < 0).sum())
    where = "in none"
    if ups or downs:
        where = f"up in {ups} and down in {downs}"
    span = f"{points(tests['difference'].min())} to {points(tests['difference'].max())} points"
    return f"{subject} {span} over {len(tests)} conditions, significantly {where}."


def batch_sizes(asked: Asked) -> str:
    """Return how scores change from the smallest batch size to the largest, with their tests."""
    tests = rows_of(asked.inputs.batch_sizes, metric=asked.metric)
    if tests.empty:
        return ""
    smallest = tests["against"].min()
    largest = tests["batch_size"].max()
    tests = rows_of(tests, against=smallest, batch_size=largest).sort_values("difference")
    metric = metric_label(asked.metric)

    def changes(rows: pd.DataFrame) -> str:
        """Return "SmoothAP (+3.3 [+1.7, +5.0])" of each loss, or the range over many."""
        if len(rows) > NAMED_LOSSES:
            ends = [_tenths(rows["difference"].min()), _tenths(rows["difference"].max())]
            return f"{count(len(rows), 'loss')} ({' to '.join(ends)})"
        named = []
        for row in records(rows, PairRow):
            span = interval(row.ci_low, row.ci_high, _tenths)
            named.append(f"{asked.inputs.label(row.loss)} ({_tenths(row.difference)} {span})")
        return listed(named)

    significant = tests["significant"]
    rises = tests["difference"] > 0
    found = {
        f"{metric} rises for": tests[significant & rises][::-1],
        f"{metric} falls for": tests[significant & ~rises],
        "no change is shown for": tests[~significant],
    }
    parts = [f"{words} {changes(rows)}" for words, rows in found.items() if len(rows)]
    size = tests["family_size"].max()
    how = (
        "Tests: Welch's, unpaired because two batch sizes share no batches, Holm over the "
        f"{count(size, 'loss')}."
    )
    if not size:
        how = "A test needs at least two runs of both sizes."
    return f"From batch size {smallest} to {largest}, in points: {'; '.join(parts)}. {how}"


def _tenths(share: float) -> str:
    return points(share, 1)


def highest_means(asked: Asked) -> str:
    """Return which losses have the highest mean, after what the tests say.

    Over many conditions, a loss counts where at least two were run.
    """
    means = asked.means
    inputs = asked.inputs
    metric = metric_label(asked.metric)
    compared = means[means.groupby(CONDITION)["loss"].transform("size") > 1]
    places = len(compared.drop_duplicates(WHERE))
    if asked.one_place or places == 1:
        if not asked.one_place:
            means = compared
        parts = []
        for batch_size, group in means.groupby("batch_size"):
            first = next(records(group.nlargest(1, "mean"), ScoreRow))
            score = f"{mean_sd(first.mean, first.sd)}%, n={first.n}"
            parts.append(f"{inputs.label(first.loss)} at batch size {batch_size} ({score})")
        where = dataset_label(*means[WHERE].iloc[0])
        return f"The highest mean {metric} on {where}: {listed(parts)}."
    if not places:
        places = len(means.drop_duplicates(WHERE))
        return f"In none of the conditions of {count(places, 'setting')} have two losses finished."
    best = compared.loc[compared.groupby(CONDITION)["mean"].idxmax()]
    wins = best.groupby("loss").size().sort_values(ascending=False, kind="stable")
    most = wins.head(NAMED_LOSSES)
    named = [f"{inputs.label(str(loss))} in {number}" for loss, number in most.items()]
    if len(wins) > NAMED_LOSSES:
        named.append(f"{count(len(wins) - NAMED_LOSSES, 'other loss')} in the rest")
    return f"The highest mean {metric}: {listed(named)} of {count(len(best), 'condition')}."


def order_of_heads(asked: Asked) -> str:
    """Return the heads of each dataset and batch size by their mean, untrained features among them.

    Heads of one rank are equal as they are printed.
    """
    inputs = asked.inputs
    orders = []
    for (dataset, batch_size), rows in asked.means.groupby(["dataset", "batch_size"], sort=False):
        ranked = rows.assign(rank=rows["mean"].round(4).rank(method="min", ascending=False))
        named = []
        for row in records(ranked.sort_values("rank", kind="stable"), RankedRow):
            options = Setting.from_label(row.setting).options
            name = ", ".join([inputs.label(row.loss), *options])
            named.append(f"{row.rank:.0f} {name} {percent(row.mean)}")
        where = f"{dataset_name(str(dataset))}, batch size {batch_size}"
        orders.append(f"{where}: {'; '.join(first_of(named, NAMED_HEADS))}")
    metric = metric_label(asked.metric)
    return f"Ranks of heads by mean {metric} in percent: {'. '.join(orders)}. {OF_HEADS}"


def noise_shares(asked: Asked) -> str:
    """Return for each loss of a square which share of the variance each source makes."""
    rows = rows_of(asked.inputs.noise, metric=asked.metric)
    sentences = []
    for _, sources in rows.groupby([*CONDITION, "loss"], sort=False):
        first = next(records(sources, NoiseRow))
        parts = [
            f"{row.source} {100 * row.share:.0f}% [{100 * row.low:.0f}, {100 * row.high:.0f}]"
            for row in records(sources, NoiseRow)
        ]
        where = dataset_label(first.dataset, first.setting, first.split)
        runs = count(int(first.runs), "run")
        sentences.append(
            f"Shares of the variance of {metric_label(asked.metric)} over {runs} of "
            f"{asked.inputs.label(first.loss)} ({where}, batch size {first.batch_size}): "
            f"{listed(parts)}. Interaction is what sources do only together."
        )
    return " ".join(sentences)


def sweeps(asked: Asked) -> str:
    """Return the sweeps with a significant difference, and the furthest value of each."""
    swept = asked.inputs.printed.sweeps
    tests = swept[swept["p_holm"].notna()]
    tested = tests["title"].nunique()
    if not tested:
        needed = "at least two common seeds of a setting and its default"
        return f"No sweep could be tested: that takes {needed}."
    number = count(tested, "sweep")
    if tested < swept["title"].nunique():
        number += " that could be tested"
    sure = tests[tests["significant"].astype(bool)]
    ordered = sure.sort_values("difference", key=abs, kind="stable")
    furthest = ordered.drop_duplicates("title", keep="last").sort_index()
    significantly = "significantly from the default after Holm's correction"
    if furthest.empty:
        return f"In none of {number} does a setting differ {significantly}."
    parts = []
    for best in records(furthest, SweptRow):
        by = f"{points(best.difference)} points of {metric_label(best.metric)}"
        parts.append(f"{best.title} {best.value} ({by})")
    return (
        f"In {len(parts)} of {number} a setting differs {significantly}; the furthest of "
        f"each: {', '.join(first_of(parts, NAMED_SWEEPS))}."
    )
