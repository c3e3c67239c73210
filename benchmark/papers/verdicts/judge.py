"""All verdicts of a study: each published number and each frozen cell against our runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmark.core.cells import Cell
from benchmark.core.errors import ConfigError, unknown_name
from benchmark.papers.candidates import Candidate, Candidates, candidates
from benchmark.papers.fidelity import study_ledger, touching
from benchmark.papers.frozen import FrozenRuns, load_frozen
from benchmark.papers.library import asked_numbers, vocabulary_of
from benchmark.papers.margins import Margins, load_margins, margin_of
from benchmark.papers.matching import match, stated_by
from benchmark.papers.numbers import PublishedNumber
from benchmark.papers.paper import load_papers
from benchmark.papers.verdicts.records import Comparison, Paired, Reference, Verdict
from benchmark.papers.verdicts.words import outcome
from benchmark.runs.table import ONE_BEST, RunTable
from benchmark.stats.families import holm
from benchmark.stats.intervals import spread
from benchmark.stats.looks import level_of
from benchmark.stats.planning import seeds_to_decide
from benchmark.stats.reproduction import ALPHA, Evidence, compare, element
from benchmark.stats.samples import (
    UNKNOWN_SPREAD,
    Sample,
    Samples,
    Score,
    Spread,
    differences_by_seed,
    place,
    shared_spreads,
)
from benchmark.stats.sensitivity import Mark, marks
from benchmark.study import Study

_VERSIONS = {"spec_digest": "specification", "code_version": "code version", "platform": "platform"}
PAPERS, OTHER = "paper", "other"
RULES = (PAPERS, OTHER, "last", "best", ONE_BEST)


def judge_numbers(
    numbers: Iterable[PublishedNumber],
    samples: Samples,
    candidates: Candidates,
    margins: Margins,
    level: float = ALPHA,
) -> list[Verdict]:
    """Return the verdicts on published numbers, from the runs that belong to them.

    ``level`` is that of each test, ``ALPHA`` unless several looks are planned.
    """
    collected = [each for cell, each in candidates.items() if cell in samples.statuses]
    listed = list(numbers)
    spreads = shared_spreads(
        {
            at: (each.sd_points, each.n_runs)
            for at, each in enumerate(listed)
            if each.is_score and each.sd_points is not None and each.n_runs is not None
        },
        lambda at: _printed_together(listed[at]),
    )
    return decide(
        [
            published(each, samples, collected, margins, spreads.get(at, UNKNOWN_SPREAD))
            for at, each in enumerate(listed)
        ],
        level,
    )


def _printed_together(number: PublishedNumber) -> tuple[str, ...]:
    """Return what printed spreads share that belong to sister cells."""
    where = (number.source, number.table, number.dataset, number.protocol)
    return (*where, number.backbone, number.metric)


def judge_frozen(
    frozen: FrozenRuns, samples: Samples, margins: Margins, level: float = ALPHA
) -> list[Verdict]:
    """Return the verdicts on frozen runs, from the runs of the same cells now."""
    then_spreads = shared_spreads({key: (each.sd, each.n) for key, each in frozen.items()}, place)
    pairs = _pairs(frozen, samples)
    comparisons = []
    for key, then in frozen.items():
        cell, split, metric = key
        reference = Reference(then.mean, then.sd, then.n, then_spreads[key], 0.0, sample=then)
        margin = _margin(metric, margins, then.mean)
        each = Comparison(reference, cell, split, metric, samples.selection, margin)
        if cell in samples.statuses:
            now = samples.sample(cell, split, metric)
            each = _with_runs(each, samples)
            each = replace(each, paired=pairs.get(key, Paired()), remark=_changes(then, now))
        else:
            each = replace(each, note="the frozen cell is not in this study's runs")
        comparisons.append(each)
    return decide(comparisons, level)


def _pairs(frozen: FrozenRuns, samples: Samples) -> dict[Score, Paired]:
    """Return the differences under common seeds, of two or more, with their shared spreads."""
    differences = {
        key: differences_by_seed(samples.sample(*key), then) for key, then in frozen.items()
    }
    changed = {key[0] for key, each in differences.items() if any(each.values())}
    differences = {key: each for key, each in differences.items() if len(each) >= 2}
    spreads = shared_spreads(
        {key: (spread(each.values()), len(each)) for key, each in differences.items()}, place
    )
    return {
        key: Paired(each, spreads[key], key[0] not in changed) for key, each in differences.items()
    }


def published(
    number: PublishedNumber,
    samples: Samples,
    candidates: Sequence[Candidate],
    margins: Margins,
    printed: Spread = UNKNOWN_SPREAD,
) -> Comparison:
    """Return the evidence on a published number, whose own spread is ``printed``."""
    nan = float("nan")
    margin = _margin(number.metric, margins, number.points if number.is_score else nan)
    reference = Reference(number=number)
    each = Comparison(reference, None, number.protocol, number.metric, samples.selection, margin)
    if not number.is_score:
        return replace(each, note="not a retrieval score of a whole test set: not judged")
    sd, runs = number.sd_points, number.n_runs
    reference = Reference(
        number.points,
        nan if sd is None else sd,
        nan if runs is None else runs,
        printed,
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
    key = (each.cell, each.split, each.metric)
    statuses, ours = samples.statuses[each.cell], samples.sample(*key)
    planned = ours.n > 0 or (not statuses.get("ok") and each.metric in samples.metrics)
    spread = samples.spread(*key)
    return replace(each, ours=ours, spread=spread, statuses=statuses, planned=planned)


def _margin(metric: str, margins: Margins, score: float) -> float:
    margin = margin_of(metric, margins, score)
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


def frozen_path(study: Study) -> Path | None:
    """Return the file of the study's frozen runs, or None for a study that names none."""
    return Path(study.references.frozen) if study.references.frozen else None


def judge_study(study: Study, table: RunTable, selection: str = PAPERS) -> list[Verdict]:
    """Return the verdicts on all reference numbers of a study.

    ``selection`` "paper" judges the numbers of each paper at the epoch that its authors report,
    the last one where they do not say; "other" at the other reading of each: the last epoch, or the
    best epoch of each metric. The other words hold for all papers alike. Frozen runs are judged at
    their last epoch, and not under "other" or "best". Those that do not exist yet are no error.
    """
    if selection not in RULES:
        raise ConfigError("--selection", [unknown_name("selection rule", selection, RULES)])
    margins, level = load_margins(), level_of(study)
    found = candidates(study)
    by_rule: dict[str, list[PublishedNumber]] = {}
    for number in asked_numbers(study.references.published):
        by_rule.setdefault(rule_of(number, selection), []).append(number)
    verdicts = []
    for rule, numbers in by_rule.items():
        verdicts += judge_numbers(numbers, Samples(table, rule), found, margins, level)
    verdicts = with_deviations(verdicts, study)
    frozen = frozen_path(study)
    if selection in (PAPERS, "last") and frozen is not None and frozen.is_file():
        verdicts += judge_frozen(load_frozen(frozen), Samples(table), margins, level)
    return verdicts


def rule_of(number: PublishedNumber, selection: str) -> str:
    """Return the rule by which the epoch of our runs is chosen for a published number."""
    if selection not in (PAPERS, OTHER):
        return selection
    papers = {source: paper for paper in load_papers().values() for source in paper.names}
    own = papers[number.source].selection
    if selection == PAPERS:
        return own
    return "best" if own == "last" else "last"


def deviation_remarks(study: Study) -> dict[Cell, str]:
    """Return the deviations of each cell whose expected effect is above 0.3 points, in words."""
    rows = study_ledger(study)
    remarks: dict[Cell, str] = {}
    for block in study.blocks if rows else ():
        for spec in block.specs():
            if spec.cell not in remarks:
                large = [row for row in touching(rows, block.recipe_name, spec) if row.large]
                remarks[spec.cell] = "; ".join(row.sentence for row in large)
    return remarks


def with_deviations(verdicts: Iterable[Verdict], study: Study) -> list[Verdict]:
    """Return verdicts on published numbers with the deviations of their runs in the remark."""
    remarks = deviation_remarks(study)
    result = []
    for each in verdicts:
        cell = each.comparison.cell
        words = remarks.get(cell, "") if cell and each.comparison.reference.number else ""
        if words:
            joined = "; ".join(filter(None, [each.comparison.remark, f"deviates: {words}"]))
            each = replace(each, comparison=replace(each.comparison, remark=joined))
        result.append(each)
    return result


def decide(comparisons: Sequence[Comparison], level: float = ALPHA) -> list[Verdict]:
    """Return the verdicts in the order of ``comparisons``, each tested at ``level``."""
    families: dict[tuple[str, str], list[int]] = {}
    for index, each in enumerate(comparisons):
        families.setdefault(each.family, []).append(index)
    found: dict[int, Verdict] = {}
    for members in families.values():
        table = _table([comparisons[index] for index in members], level)
        found |= dict(zip(members, table, strict=True))
    return [found[index] for index in range(len(comparisons))]


def _table(comparisons: Sequence[Comparison], level: float) -> list[Verdict]:
    """Return the verdicts of one family."""
    planned = sum(each.planned for each in comparisons)
    numbers = evidence(comparisons)
    tests, plain = (compare(each, level) for each in (numbers, evidence(comparisons, plain=True)))
    p_holm = holm(tests.p_drift, planned)
    testable = np.isfinite(tests.p_drift)
    size = max(planned, int(testable.sum()))
    published = np.array([each.reference.number is not None for each in comparisons])
    changed = marks(numbers, published=published, alpha=level, planned=planned)
    verdicts = []
    for at, each in enumerate(comparisons):
        test = tests.at(at) if testable[at] else None
        seeds = None
        if test is not None:
            seeds = seeds_to_decide(element(numbers, at), family=size, alpha=level)
        said = outcome(each, test, float(p_holm[at]), size, seeds, level)
        sensitivity: dict[str, Mark] = {}
        if test is not None and said.tested:
            sensitivity = {name: mark.at(at) for name, mark in changed.items()}
        verdicts.append(
            Verdict(
                each,
                test,
                plain.at(at) if np.isfinite(plain.p_drift[at]) else None,
                sensitivity,
                float(tests.difference[at]),
                float(p_holm[at]),
                size,
                said,
                level,
            )
        )
    return verdicts


def evidence(comparisons: Sequence[Comparison], *, plain: bool = False) -> Evidence:
    """Return the numbers of ``comparisons`` as arrays.

    ``plain`` takes each cell's own spread in place of the one that it shares with its sisters.
    """

    def columns(each: Comparison) -> dict[str, float]:
        spreads = (each.spread, each.reference.spread, each.paired.spread)
        own, theirs, pairs = (spread.plain if plain else spread for spread in spreads)
        reference = each.reference.mean
        return dict(
            ours=reference + each.paired.mean if each.is_paired else each.ours.mean,
            ours_n=each.ours.n or np.nan,
            reference=reference,
            variance=own.sd**2,
            df=own.df,
            reference_n=each.reference.n,
            reference_variance=theirs.sd**2,
            reference_df=theirs.df,
            paired_n=each.paired.n or np.nan,
            paired_variance=pairs.sd**2,
            paired_df=pairs.df,
            identical=each.paired.identical,
            margin=each.margin,
            slack=np.nan_to_num(each.reference.rounding),
        )

    rows = [columns(each) for each in comparisons]
    return Evidence(**{name: np.array([row[name] for row in rows], float) for name in rows[0]})
