"""All verdicts of a study: each published number and each frozen cell against our runs.

Frozen runs are the raw headline scores of a study's runs, kept with the repository: every single
value, never only a mean, so that a later comparison has both spreads. Their file has one row per
run, split and metric, scores in [0, 1]; a diverged run has one row without a value.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmark.core.errors import ConfigError, ReferenceDataError, unknown_name
from benchmark.core.files import write_text
from benchmark.core.records import CELL_COLUMNS, Cell, Setting
from benchmark.papers.matching import Candidates, Match, candidates, match, stated_by
from benchmark.papers.numbers import PublishedNumber
from benchmark.papers.paper import asked_numbers, paper_of
from benchmark.papers.verdicts import Verdict, in_words
from benchmark.papers.vocabulary import margin_of
from benchmark.runs.run_table import ONE_BEST, RunTable
from benchmark.stats.intervals import spread
from benchmark.stats.planning import level_of, seeds_to_decide
from benchmark.stats.reproduction import (
    ALPHA,
    UNDECIDED,
    UNTESTED,
    Evidence,
    compare,
    element,
    marks,
)
from benchmark.stats.samples import (
    UNKNOWN_SPREAD,
    VERSIONS,
    Sample,
    Samples,
    Score,
    differences_by_seed,
    place,
    shared_spreads,
    with_spreads,
)
from benchmark.study import Study

PAPERS, OTHER = "paper", "other"
RULES = (PAPERS, OTHER, "last", "best", ONE_BEST)
COLUMNS = [*CELL_COLUMNS, "seed", "status", "split", "metric", "value", *VERSIONS]  # of frozen runs
_OF_NUMBER = (
    *("source", "table", "row_label", "provenance", "backbone", "embedding_dim", "metric", "line"),
)
_OF_TEST = ("se", "df", "p_equivalence", "p_drift")
_SHOWN = 5
# By cell, split and metric; a cell whose runs all diverged has one entry without these names.
FrozenRuns = Mapping[Score, Sample]


def load_frozen(path: Path) -> FrozenRuns:
    """Return the frozen scores at ``path``."""
    groups: dict[Score, list[Mapping[str, str]]] = {}
    diverged: dict[Cell, set[str]] = {}
    with open(path, newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            setting, size = Setting.from_label(row["setting"]), int(row["batch_size"])
            cell = Cell(row["dataset"], setting, row["loss"], row["base_loss"], size)
            groups.setdefault((cell, row["split"], row["metric"]), []).append(row)
            if row["status"] == "diverged":
                diverged.setdefault(cell, set()).add(row["seed"])
    samples = {
        key: Sample(
            {int(row["seed"]): 100 * float(row["value"]) for row in rows if row["value"]},
            {name: tuple(sorted({row[name] for row in rows})) for name in VERSIONS},
            len(diverged.get(key[0], ())),
        )
        for key, rows in sorted(groups.items())
    }
    scored = {key[0] for key, each in samples.items() if each.n}
    return with_spreads(
        {key: each for key, each in samples.items() if each.n or key[0] not in scored}
    )


def freeze(
    table: RunTable, path: Path, *, metrics: list[str] | None = None, partial: bool = False
) -> int:
    """Write the headline scores of ``table`` to ``path``; return the number of runs frozen.

    Runs that are missing, failed or stale would leave holes that nobody sees later: they are
    refused, with their names, unless ``partial``. A diverged run is a result and is kept as such.
    """
    runs = table.runs
    holes = runs[~runs["status"].isin(["ok", "diverged"])]
    if len(holes) and not partial:
        shown = [f"  {row.run_id}: {row.status}" for row in holes.head(_SHOWN).itertuples()]
        shown += [f"  and {len(holes) - _SHOWN} more"] if len(holes) > _SHOWN else []
        words = f"{len(holes)} of {len(runs)} runs have no result, nothing was frozen:"
        advice = "run the study to its end first, or accept the holes with --partial"
        raise ReferenceDataError("\n".join([words, *shown, advice]))
    about = runs[["run_id", "status", *VERSIONS]]
    scores = table.test_scores("last", metrics).merge(about, on="run_id")
    diverged = runs[runs["status"] == "diverged"].assign(split="", metric="", value=float("nan"))
    order = [*CELL_COLUMNS, "seed", "split", "metric"]
    frozen = pd.concat([scores, diverged])[COLUMNS].sort_values(order)
    if frozen.empty:
        raise ReferenceDataError(
            "no finished run has a score, nothing was frozen; run the study first"
        )
    write_text(path, frozen.to_csv(index=False, float_format="%.17g", lineterminator="\n"))
    return len(frozen.drop_duplicates([*CELL_COLUMNS, "seed"]))


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
    level, found = level_of(study), candidates(study)
    by_rule: dict[str, list[PublishedNumber]] = {}
    for number in asked_numbers(study.references.published):
        by_rule.setdefault(rule_of(number, selection), []).append(number)
    verdicts = []
    for rule, numbers in by_rule.items():
        verdicts += judge_numbers(numbers, Samples(table, rule), found, level)
    frozen = frozen_path(study)
    if selection in (PAPERS, "last") and frozen is not None and frozen.is_file():
        verdicts += judge_frozen(load_frozen(frozen), Samples(table), level)
    return verdicts


def rule_of(number: PublishedNumber, selection: str) -> str:
    """Return the rule by which the epoch of our runs is chosen for a published number."""
    if selection not in (PAPERS, OTHER):
        return selection
    paper = paper_of(number.source)
    own = paper.selection if paper else "last"
    if selection == PAPERS:
        return own
    return "best" if own == "last" else "last"


def judge_numbers(
    numbers: Iterable[PublishedNumber],
    samples: Samples,
    candidates: Candidates,
    level: float = ALPHA,
) -> list[Verdict]:
    """Return the verdicts on published numbers, from the runs that belong to them.

    ``level`` is that of each test, ``ALPHA`` unless several looks are planned. Printed spreads that
    belong to sister cells are shared.
    """
    collected = [each for cell, each in candidates.items() if cell in samples.statuses]
    listed = list(numbers)

    def sisters(at: int) -> tuple[str, ...]:
        each = listed[at]
        where = (each.source, each.table, each.dataset, each.protocol)
        return (*where, each.backbone, each.metric)

    printed = {
        at: (each.sd_points, each.n_runs)
        for at, each in enumerate(listed)
        if each.is_score and each.sd_points is not None and each.n_runs is not None
    }
    spreads, rows = shared_spreads(printed, sisters), []
    for at, number in enumerate(listed):
        found = Match(None, reason="not a retrieval score of a whole test set: not judged")
        points = sd = runs = None
        if number.is_score:
            found = match(stated_by(number), collected, samples.splits)
            points, sd, runs = number.points, number.sd_points, number.n_runs
        cell = found.candidate.cell if found.candidate else None
        ours = cell or number
        row = Verdict(
            **{name: getattr(number, name) for name in _OF_NUMBER},
            dataset=number.dataset or ours.dataset,
            setting=str(cell.setting) if cell else "",
            loss=ours.loss,
            batch_size=ours.batch_size,
            split=found.split if cell else number.protocol,
            published_value=number.value,
            published_unit=number.unit,
            reference_mean=_known(points),
            reference_sd=_known(sd),
            reference_n=_known(runs),
            selection=samples.selection,
            margin=_known(margin_of(number.metric, _known(points))),
            rounding=number.rounding if number.is_score else nan,
            cell=cell,
            reference_spread=spreads.get(at, UNKNOWN_SPREAD),
            note=found.reason,
        )
        rows.append(_with_runs(row, samples) if cell else row)
    return _decided(rows, level)


def judge_frozen(frozen: FrozenRuns, samples: Samples, level: float = ALPHA) -> list[Verdict]:
    """Return the verdicts on frozen runs, from the runs of the same cells now."""
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
            margin=_known(margin_of(metric, then.mean)),
            rounding=0.0,
            cell=cell,
            then=then,
            reference_spread=then.spread,
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
    return _decided(rows, level)


def _with_runs(row: Verdict, samples: Samples) -> Verdict:
    assert row.cell is not None
    key = (row.cell, row.split, row.metric)
    statuses, ours = samples.statuses[row.cell], samples.sample(*key)
    return replace(
        row,
        ours=ours,
        ours_mean=ours.mean,
        ours_sd=ours.sd,
        ours_n=ours.n,
        spread=ours.spread,
        ours_spread=ours.spread.sd,
        statuses=statuses,
        n_diverged=statuses.get("diverged", 0),
        planned=ours.n > 0 or (not statuses.get("ok") and row.metric in samples.metrics),
    )


def _known(value: float | None) -> float:
    return nan if value is None else value


def _changes(then: Sample, now: Sample) -> str:
    """Return what differs between two samples besides the scores."""
    parts = []
    for key, name in zip(VERSIONS, ("specification", "code version", "platform"), strict=True):
        old, new = then.versions.get(key, ()), now.versions.get(key, ())
        if old and new and set(old) != set(new):
            shown = "" if key == "spec_digest" else f" ({', '.join(old)}; now {', '.join(new)})"
            parts.append(f"{name} differs{shown}")
    return "; ".join(parts)


def _decided(rows: Sequence[Verdict], level: float) -> list[Verdict]:
    """Return the rows with the verdict on each; a family is of one source and table."""
    families: dict[tuple[str, str], list[int]] = {}
    for at, each in enumerate(rows):
        families.setdefault((each.source, each.table), []).append(at)
    found = list(rows)
    for members in families.values():
        for at, verdict in zip(members, _family([rows[at] for at in members], level), strict=True):
            found[at] = verdict
    return found


def _family(rows: Sequence[Verdict], level: float) -> list[Verdict]:
    planned, numbers = sum(each.planned for each in rows), _evidence(rows)
    tests = compare(numbers, level, planned)
    alone = compare(_evidence(rows, plain=True), level, planned)
    published = np.array([each.then is None for each in rows])
    changed = marks(numbers, published=published, alpha=level, planned=planned)
    size = max(planned, int(np.isfinite(tests.p_drift).sum()))
    verdicts = []
    for at, row in enumerate(rows):
        test, plain = element(tests, at), element(alone, at)
        found: dict[str, Any] = {
            "difference": float(test.difference),
            "p_holm": float(test.p_holm),
            "plain": plain if np.isfinite(plain.p_drift) else None,
        }
        if test.verdict != UNTESTED:
            found |= {
                "test": test,
                "marks": {name: element(mark, at) for name, mark in changed.items()},
                "ci_low": float(test.low),
                "ci_high": float(test.high),
                **{name: float(getattr(test, name)) for name in _OF_TEST},
            }
        if test.verdict == UNDECIDED:
            seeds = seeds_to_decide(element(numbers, at), family=size, alpha=level)
            found["seeds_to_decide"] = _known(seeds)
        verdicts.append(in_words(replace(row, family_size=size, level=level, **found)))
    return verdicts


def _evidence(rows: Sequence[Verdict], *, plain: bool = False) -> Evidence:
    """Return the rows as arrays; ``plain``: with each cell's own spread, not the shared one."""
    found = []
    for row in rows:
        spreads = (row.spread, row.reference_spread, row.paired_spread)
        own, theirs, pairs = (spread.plain if plain else spread for spread in spreads)
        gaps = list(row.paired.values())
        columns = dict(
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
        found.append(columns)
    return Evidence(**{name: np.array([row[name] for row in found], float) for name in found[0]})
