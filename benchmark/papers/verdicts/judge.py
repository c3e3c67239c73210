"""Judging a study: each published number and each frozen cell against our runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmark.papers.candidates import Candidate, Candidates
from benchmark.papers.frozen import FrozenRuns
from benchmark.papers.library import vocabulary_of
from benchmark.papers.margins import margin_of
from benchmark.papers.matching import match, stated_by
from benchmark.papers.numbers import PublishedNumber
from benchmark.papers.verdicts.records import Comparison, Reference, Verdict
from benchmark.papers.verdicts.words import outcome
from benchmark.stats.multiple import holm
from benchmark.stats.rule import Evidence, compare
from benchmark.stats.samples import Sample, Samples, paired_spread

Margins = Mapping[str, float]
_VERSIONS = {"spec_digest": "specification", "code_version": "code version", "platform": "platform"}


def judge_numbers(
    numbers: Iterable[PublishedNumber], samples: Samples, candidates: Candidates, margins: Margins
) -> list[Verdict]:
    """Return the verdicts on published numbers, from the runs that belong to them."""
    collected = [each for cell, each in candidates.items() if cell in samples.statuses]
    return decide([published(each, samples, collected, margins) for each in numbers])


def judge_frozen(frozen: FrozenRuns, samples: Samples, margins: Margins) -> list[Verdict]:
    """Return the verdicts on frozen runs, from the runs of the same cells now."""
    comparisons = []
    for (cell, split, metric), then in frozen.items():
        reference = Reference(then.mean, then.sd, then.n, 0.0, sample=then)
        margin = _margin(metric, margins)
        each = Comparison(reference, cell, split, metric, samples.selection, margin)
        if cell in samples.statuses:
            now = samples.sample(cell, split, metric)
            each = _with_runs(each, samples)
            each = replace(each, paired=paired_spread(now, then), remark=_changes(then, now))
        else:
            each = replace(each, note="the frozen cell is not in this study's runs")
        comparisons.append(each)
    return decide(comparisons)


def published(
    number: PublishedNumber, samples: Samples, candidates: Sequence[Candidate], margins: Margins
) -> Comparison:
    """Return the evidence on a published number."""
    nan, margin = float("nan"), _margin(number.metric, margins)
    reference = Reference(number=number)
    each = Comparison(reference, None, number.protocol, number.metric, samples.selection, margin)
    if not number.is_score:
        return replace(each, note="not a retrieval score of a whole test set: not judged")
    sd, runs = number.sd_points, number.n_runs
    reference = Reference(
        number.points,
        nan if sd is None else sd,
        nan if runs is None else runs,
        number.rounding,
        number,
    )
    found = match(stated_by(number, vocabulary_of(number.source)), candidates, samples.splits)
    each = replace(each, reference=reference)
    if found.candidate is None:
        return replace(each, note=found.reason)
    return _with_runs(replace(each, cell=found.candidate.cell, split=found.split), samples)


def _with_runs(each: Comparison, samples: Samples) -> Comparison:
    """Return the evidence with what our runs of its cell contribute."""
    assert each.cell is not None
    place = (each.cell, each.split, each.metric)
    return replace(
        each,
        ours=samples.sample(*place),
        pooled=samples.pooled(*place),
        statuses=samples.statuses[each.cell],
    )


def _margin(metric: str, margins: Margins) -> float:
    margin = margin_of(metric, margins)
    return float("nan") if margin is None else margin


def _changes(then: Sample, now: Sample) -> str:
    """Return what differs between two samples besides the scores, as text; "" for nothing."""
    parts = []
    for key, name in _VERSIONS.items():
        old, new = then.versions.get(key, ()), now.versions.get(key, ())
        if old and new and set(old) != set(new):
            shown = "" if key == "spec_digest" else f" ({', '.join(old)}; now {', '.join(new)})"
            parts.append(f"{name} differs{shown}")
    return "; ".join(parts)


def decide(comparisons: Sequence[Comparison]) -> list[Verdict]:
    """Return the verdicts: the rule on all numbers at once, then Holm's correction over each table.

    A family is all numbers of one source and table that could be tested. Equivalence needs no
    correction: each number is called reproduced on its own evidence.
    """
    if not comparisons:
        return []
    tests = compare(evidence(comparisons))
    testable = np.isfinite(tests.p_drift) & np.isfinite(tests.difference)
    families: dict[tuple[str, str], list[int]] = {}
    for index, each in enumerate(comparisons):
        families.setdefault(each.family, []).append(index)
    p_holm, size = np.full(len(comparisons), np.nan), np.zeros(len(comparisons), int)
    for members in families.values():
        p_holm[members] = holm(np.where(testable, tests.p_drift, np.nan)[members])
        size[members] = testable[members].sum()
    verdicts = []
    for index, each in enumerate(comparisons):
        test = tests.at(index) if testable[index] else None
        family_size, p = int(size[index]), float(p_holm[index])
        difference = float(tests.difference[index])
        verdicts.append(
            Verdict(each, test, difference, p, family_size, outcome(each, test, p, family_size))
        )
    return verdicts


def evidence(comparisons: Sequence[Comparison]) -> Evidence:
    """Return the numbers of ``comparisons`` as arrays."""
    columns = [
        (
            each.ours.mean,
            each.ours.sd,
            each.ours.n or np.nan,
            each.reference.mean,
            each.reference.sd,
            each.reference.n,
            each.pooled.sd,
            each.pooled.df,
            each.paired.sd,
            each.paired.n,
            each.margin,
            np.nan_to_num(each.reference.rounding),
        )
        for each in comparisons
    ]
    return Evidence(*np.array(columns, dtype=float).T)
