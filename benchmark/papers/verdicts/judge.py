"""All verdicts of a study: each published number and each frozen cell against our runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path

import numpy as np

from benchmark.core.errors import ConfigError, unknown_name
from benchmark.papers.candidates import Candidate, Candidates, candidates
from benchmark.papers.frozen import FrozenRuns, load_frozen
from benchmark.papers.library import asked_numbers, vocabulary_of
from benchmark.papers.margins import Margins, load_margins, margin_of
from benchmark.papers.matching import Match, match, stated_by
from benchmark.papers.numbers import PublishedNumber
from benchmark.papers.paper import load_papers
from benchmark.papers.verdicts.records import Verdict
from benchmark.papers.verdicts.words import in_words
from benchmark.runs.table import ONE_BEST, RunTable
from benchmark.stats.intervals import spread
from benchmark.stats.looks import level_of
from benchmark.stats.planning import seeds_to_decide
from benchmark.stats.reproduction import ALPHA, UNDECIDED, UNTESTED, Evidence, compare, element
from benchmark.stats.samples import (
    UNKNOWN_SPREAD,
    Sample,
    Samples,
    Spread,
    differences_by_seed,
    place,
    shared_spreads,
)
from benchmark.stats.sensitivity import marks
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
    rows = [
        _beside_print(each, samples, collected, margins, spreads.get(at, UNKNOWN_SPREAD))
        for at, each in enumerate(listed)
    ]
    return decide(rows, level)


def _printed_together(number: PublishedNumber) -> tuple[str, ...]:
    """Return what printed spreads share that belong to sister cells."""
    where = (number.source, number.table, number.dataset, number.protocol)
    return (*where, number.backbone, number.metric)


def _beside_print(
    number: PublishedNumber,
    samples: Samples,
    candidates: Sequence[Candidate],
    margins: Margins,
    printed: Spread,
) -> Verdict:
    """Return a published number, whose own spread is ``printed``, beside the runs of its cell."""
    found = Match(None, reason="not a retrieval score of a whole test set: not judged")
    points = sd = runs = None
    if number.is_score:
        found = match(stated_by(number, vocabulary_of(number.source)), candidates, samples.splits)
        points, sd, runs = number.points, number.sd_points, number.n_runs
    cell = found.candidate.cell if found.candidate else None
    ours = cell or number
    margin = margin_of(number.metric, margins, _known(points))
    row = Verdict(
        source=number.source,
        table=number.table,
        row_label=number.row_label,
        provenance=number.provenance,
        dataset=number.dataset or ours.dataset,
        setting=str(cell.setting) if cell else "",
        backbone=number.backbone,
        embedding_dim=number.embedding_dim,
        loss=ours.loss,
        batch_size=ours.batch_size,
        split=found.split if cell else number.protocol,
        metric=number.metric,
        published_value=number.value,
        published_unit=number.unit,
        reference_mean=_known(points),
        reference_sd=_known(sd),
        reference_n=_known(runs),
        selection=samples.selection,
        margin=_known(margin),
        rounding=number.rounding if number.is_score else nan,
        line=number.line,
        cell=cell,
        reference_spread=printed if number.is_score else UNKNOWN_SPREAD,
        note=found.reason,
    )
    return _with_runs(row, samples) if cell else row


def judge_frozen(
    frozen: FrozenRuns, samples: Samples, margins: Margins, level: float = ALPHA
) -> list[Verdict]:
    """Return the verdicts on frozen runs, from the runs of the same cells now."""
    spreads = shared_spreads({key: (each.sd, each.n) for key, each in frozen.items()}, place)
    gaps = {key: differences_by_seed(samples.sample(*key), then) for key, then in frozen.items()}
    changed = {key[0] for key, each in gaps.items() if any(each.values())}
    pairs = {key: each for key, each in gaps.items() if len(each) >= 2}
    paired_spreads = shared_spreads(
        {key: (spread(each.values()), len(each)) for key, each in pairs.items()}, place
    )
    rows = []
    for key, then in frozen.items():
        cell, split, metric = key
        row = Verdict(
            row_label=f"{cell.dataset}/{cell.setting}/{cell.loss}",
            dataset=cell.dataset,
            setting=str(cell.setting),
            backbone=cell.setting.backbone,
            loss=cell.loss,
            batch_size=cell.batch_size,
            split=split,
            metric=metric,
            reference_mean=then.mean,
            reference_sd=then.sd,
            reference_n=then.n,
            selection=samples.selection,
            margin=_known(margin_of(metric, margins, then.mean)),
            rounding=0.0,
            cell=cell,
            then=then,
            reference_spread=spreads[key],
        )
        if cell not in samples.statuses:
            rows.append(replace(row, note="the frozen cell is not in this study's runs"))
            continue
        row = _with_runs(row, samples)
        row = replace(row, remark=_changes(then, row.ours))
        if key in pairs:
            row = replace(
                row,
                paired=pairs[key],
                paired_n=len(pairs[key]),
                paired_spread=paired_spreads[key],
                identical=cell not in changed,
            )
        rows.append(row)
    return decide(rows, level)


def _with_runs(row: Verdict, samples: Samples) -> Verdict:
    """Return the row with what our runs of its cell contribute."""
    assert row.cell is not None
    key = (row.cell, row.split, row.metric)
    statuses, ours, own = samples.statuses[row.cell], samples.sample(*key), samples.spread(*key)
    return replace(
        row,
        ours=ours,
        ours_mean=ours.mean,
        ours_sd=ours.sd,
        ours_n=ours.n,
        spread=own,
        ours_spread=own.sd,
        statuses=statuses,
        n_diverged=statuses.get("diverged", 0),
        planned=ours.n > 0 or (not statuses.get("ok") and row.metric in samples.metrics),
    )


def _known(value: float | None) -> float:
    return nan if value is None else value


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


def decide(rows: Sequence[Verdict], level: float = ALPHA) -> list[Verdict]:
    """Return the rows, in their order, with the verdict on each, tested at ``level``.

    Numbers of one source and table are a family.
    """
    families: dict[tuple[str, str], list[int]] = {}
    for at, each in enumerate(rows):
        families.setdefault((each.source, each.table), []).append(at)
    found: dict[int, Verdict] = {}
    for members in families.values():
        found |= zip(members, _table([rows[at] for at in members], level), strict=True)
    return [found[at] for at in range(len(rows))]


def _table(rows: Sequence[Verdict], level: float) -> list[Verdict]:
    """Return the verdicts of one family."""
    planned, numbers = sum(each.planned for each in rows), evidence(rows)
    tests = compare(numbers, level, planned)
    alone = compare(evidence(rows, plain=True), level, planned)
    published = np.array([each.then is None for each in rows])
    changed = marks(numbers, published=published, alpha=level, planned=planned)
    size = max(planned, int(np.isfinite(tests.p_drift).sum()))
    verdicts = []
    for at, row in enumerate(rows):
        test, plain = element(tests, at), element(alone, at)
        row = replace(
            row,
            difference=float(test.difference),
            p_holm=float(test.p_holm),
            family_size=size,
            level=level,
            plain=plain if np.isfinite(plain.p_drift) else None,
        )
        if test.verdict != UNTESTED:
            row = replace(
                row,
                test=test,
                marks={name: element(mark, at) for name, mark in changed.items()},
                se=float(test.se),
                df=float(test.df),
                ci_low=float(test.low),
                ci_high=float(test.high),
                p_equivalence=float(test.p_equivalence),
                p_drift=float(test.p_drift),
            )
        if test.verdict == UNDECIDED:
            seeds = seeds_to_decide(element(numbers, at), family=size, alpha=level)
            row = replace(row, seeds_to_decide=_known(seeds))
        verdicts.append(in_words(row))
    return verdicts


def evidence(rows: Sequence[Verdict], *, plain: bool = False) -> Evidence:
    """Return the numbers of ``rows`` as arrays.

    ``plain`` takes each cell's own spread in place of the one that it shares with its sisters.
    """

    def columns(row: Verdict) -> dict[str, float]:
        spreads = (row.spread, row.reference_spread, row.paired_spread)
        own, theirs, pairs = (spread.plain if plain else spread for spread in spreads)
        gaps = list(row.paired.values())
        return dict(
            ours=row.reference_mean + float(np.mean(gaps)) if gaps else row.ours_mean,
            ours_n=row.ours_n or nan,
            reference=row.reference_mean,
            variance=own.sd**2,
            df=own.df,
            reference_n=row.reference_n,
            reference_variance=theirs.sd**2,
            reference_df=theirs.df,
            paired_n=row.paired_n,
            paired_variance=pairs.sd**2,
            paired_df=pairs.df,
            identical=row.identical,
            margin=row.margin,
            slack=np.nan_to_num(row.rounding),
        )

    found = [columns(row) for row in rows]
    return Evidence(**{name: np.array([row[name] for row in found], float) for name in found[0]})
