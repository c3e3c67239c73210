"""Verdicts: each published number and each frozen cell of a study against our runs.

Judging goes one way: rows with both sides (``judge_numbers``, ``judge_frozen``), the tests of each
family and the word with its reason (``_decided``), the table of ``verdicts.csv`` (``table_of``).

Frozen runs are the raw headline scores of a study's runs, kept with the repository: every single
value, never only a mean, so that a later comparison has both spreads. Their file has one row per
run, split and metric, scores in [0, 1]; a diverged run has one row without a value.
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import isfinite, isnan, nan
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmark.core.errors import ConfigError, ReferenceDataError, unknown_name
from benchmark.core.files import write_text
from benchmark.core.records import CELL_COLUMNS, Cell, Setting
from benchmark.papers.matching import Candidates, Match, candidates, match, stated_by
from benchmark.papers.numbers import GAIN, PublishedNumber
from benchmark.papers.paper import asked_numbers, paper_of
from benchmark.papers.quantities import PLAIN
from benchmark.papers.vocabulary import margin_of
from benchmark.runs.run_table import RunTable
from benchmark.stats.intervals import Floats, diverges, p_more_divergence, spread
from benchmark.stats.planning import level_of, seeds_to_decide
from benchmark.stats.reproduction import (
    ALPHA,
    DRIFTED,
    LABORATORY,
    REPRODUCED,
    SPREAD,
    STANDING,
    UNDECIDED,
    UNTESTED,
    Evidence,
    TestResult,
    compare,
    element,
    marks,
    tipping_points,
)
from benchmark.stats.samples import (
    NO_RUNS,
    UNKNOWN_SPREAD,
    VERSIONS,
    Sample,
    Samples,
    Score,
    Spread,
    differences_by_seed,
    place,
    shared_spreads,
    with_spreads,
)
from benchmark.study import Study

FROZEN = "frozen"
INCONCLUSIVE = UNDECIDED
NOT_RUN = "not_run"
NOT_ASKED = "not_asked"
SUPPORTED = "supported"
CONTRADICTED = "contradicted"
LOW, HIGH = "low", "high"  # direction of a drift: ours below or above the reference

# In the order in which they are counted and shown.
VERDICTS: dict[str, str] = {
    REPRODUCED: "the interval of ours minus reference lies inside the margin",
    DRIFTED: "the difference is beyond the margin, by a test after Holm over the table",
    INCONCLUSIVE: "the runs at hand decide neither way",
    NOT_RUN: "no run of a study belongs to this reference",
}
# The words for our own frozen runs: nobody shall take them for numbers of papers.
IDENTICAL = "identical"
OF_FROZEN = dict(zip(VERDICTS, ("agree", "differ", "undecided", NOT_RUN), strict=True))
FROZEN_VERDICTS = {IDENTICAL: "the scores are the same under every common seed"} | {
    OF_FROZEN[word]: meaning for word, meaning in VERDICTS.items()
}
CLAIM_VERDICTS: dict[str, str] = {
    SUPPORTED: "the test that stands for the sentence agrees with it",
    CONTRADICTED: "the test that stands for the sentence shows the opposite",
    INCONCLUSIVE: "the runs at hand decide neither way",
    NOT_RUN: "the runs that the sentence needs are not there",
    NOT_ASKED: "the runs have another dataset or backbone than the paper: they cannot answer",
}
# The rules by which the epoch of a run is chosen, in words.
EPOCHS = {
    "last": "at the last epoch",
    "best": "at the best test epoch of each metric",
    "one_best": "at the one test epoch with the best mAP@R",
    "best_recall_at_1": "at the one test epoch with the best R@1",
}
PAPERS, OTHER = "paper", "other"
RULES = (PAPERS, OTHER, *EPOCHS)
FROZEN_COLUMNS = [*CELL_COLUMNS, "seed", "status", "split", "metric", "value", *VERSIONS]
_OF_NUMBER = (
    *("source", "table", "row_label", "provenance", "backbone", "embedding_dim", "metric", "line"),
)
EQUAL = 1e-6  # points: what rounding alone can move
_SHOWN = 5
# By cell, split and metric; a cell whose runs all diverged has one entry without these names.
FrozenRuns = Mapping[Score, Sample]
Words = tuple[str, str, str]  # word, reason and direction
NO_TEST = element(compare(Evidence([nan], [nan], [nan])), 0)


@dataclass(frozen=True)
class Verdict:
    """A reference number beside our runs; ``COLUMNS`` are its part of ``verdicts.csv``.

    Scores, spreads and differences are in percentage points; NaN stands for what is not known.

    setting ..      of our variant, or the reference's where no run belongs to it
    planned         whether the study tests this number once all of its runs are there
    note            why there is nothing to compare, or ""
    remark          what differs between the sides besides the scores
    cell            of our runs, or of the frozen ones; None when no run belongs to the number
    statuses        number of our runs by status
    then            the frozen runs
    reference_spread  of one run, moderated with those of the table, or of other frozen cells
    paired          differences ours - reference by seed; without any, the sides are two groups
    identical       the scores differ by less than ``EQUAL`` under every common seed
    test            untested where nothing could be tested
    plain           the same test with each cell's own spread
    marks           by name of ``benchmark.stats.reproduction.MARKS``: the test if that assumption
                    fails; none where the verdict does not follow from a test
    stands          whether the verdict is the same in the worlds of ``STANDING``; None for one that
                    is neither reproduced nor drifted, or needs no test
    tip_laboratory  largest spread between laboratories, in points, under which the verdict stays
    tip_ratio       largest ratio of the published spread to ours under which it stays
    """

    source: str = FROZEN  # the paper's version, or "frozen"
    table: str = FROZEN  # the paper's table, or "frozen"
    row_label: str = ""  # as printed, or the frozen cell
    provenance: str = FROZEN
    dataset: str = ""
    setting: str = ""
    backbone: str = ""  # as the reference states it
    embedding_dim: str | None = None
    loss: str = ""
    batch_size: int | None = None
    split: str = ""
    metric: str = ""
    line: int | None = None  # in the paper's results.csv
    published_value: Decimal | None = None  # as printed, in published_unit
    published_unit: str | None = None
    reference_mean: float = nan
    reference_sd: float = nan
    reference_n: float = nan  # not stated: counts as one draw
    margin: float = nan
    rounding: float = nan
    selection: str = "last"
    planned: bool = False
    note: str = ""
    remark: str = ""

    cell: Cell | None = None
    ours: Sample = NO_RUNS
    statuses: Mapping[str, int] = field(default_factory=dict)
    n_diverged: int = 0
    then: Sample | None = None
    reference_spread: Spread = UNKNOWN_SPREAD
    paired: Mapping[int, float] = field(default_factory=dict)
    paired_n: float = nan  # seeds compared one by one
    paired_spread: Spread = UNKNOWN_SPREAD
    identical: bool = False

    family_size: int = 0  # tests that the plan has for the table
    level: float = nan  # of each test; below 0.05 where looks are planned
    test: TestResult = NO_TEST
    plain: TestResult = NO_TEST
    marks: Mapping[str, TestResult] = field(default_factory=dict)
    seeds_to_decide: float = nan  # of ours, if difference and spread stay
    verdict: str = ""
    interim: bool = False  # runs of this look are still to come that may change the verdict
    direction: str = ""  # of a drift: low or high
    stands: bool | None = None
    changes_under: str = ""  # names of MARKS
    tip_laboratory: float = nan
    tip_ratio: float = nan
    reason: str = ""

    @property
    def diverged(self) -> tuple[int, int]:
        """Our diverged runs, and all that ended."""
        return self.n_diverged, self.n_diverged + self.statuses.get("ok", 0)

    @property
    def reference_diverged(self) -> tuple[int, int]:
        """The reference's diverged runs, and all of them; a printed score has none."""
        then = self.then
        return (then.diverged, then.diverged + then.n) if then else (0, 1)


_PATHS = {  # of columns that are not fields of a verdict: where they stand
    **{"ours_mean": "ours.mean", "ours_sd": "ours.sd", "ours_n": "ours.n"},
    **{"ours_spread": "ours.spread.sd", "ci_low": "test.low", "ci_high": "test.high"},
    **{name: f"test.{name}" for name in ("difference", "se", "df")},
    **{name: f"test.{name}" for name in ("p_equivalence", "p_drift", "p_holm")},
}
COLUMNS = [
    *("source", "table", "row_label", "provenance", "dataset", "setting", "backbone"),
    *("embedding_dim", "loss", "batch_size", "split", "metric", "published_value"),
    *("published_unit", "reference_mean", "reference_sd", "reference_n", "ours_mean", "ours_sd"),
    *("ours_n", "ours_spread", "n_diverged", "selection", "paired_n", "difference", "se", "df"),
    *("ci_low", "ci_high", "margin", "rounding", "p_equivalence", "p_drift", "p_holm"),
    *("family_size", "level", "verdict", "interim", "direction", "stands", "changes_under"),
    *("tip_laboratory", "tip_ratio", "reason", "seeds_to_decide", "line"),
]


def table_of(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Return verdicts as the table of ``verdicts.csv``."""
    row = attrgetter(*(_PATHS.get(name, name) for name in COLUMNS))
    return pd.DataFrame(map(row, verdicts), columns=COLUMNS)


def by_source(verdicts: pd.DataFrame) -> list[tuple[str, pd.Series, Mapping[str, str]]]:
    """Return (heading, words, meanings) of the papers' numbers and of our own frozen runs."""
    ours, word = verdicts["source"] == FROZEN, verdicts["verdict"]
    numbers = word[~ours]
    # only identical runs have no standard error
    frozen = word[ours].map(OF_FROZEN).mask(verdicts["se"].eq(0) & word.eq(REPRODUCED), IDENTICAL)
    heading = f"Numbers of papers: {numbers.ne(NOT_RUN).sum()} of {len(numbers)} run"
    found = [(heading, numbers, VERDICTS), ("Our own frozen runs", frozen, FROZEN_VERDICTS)]
    return [each for each in found if len(each[1])]


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
    by_rule: dict[tuple[str, str], list[PublishedNumber]] = {}
    for number in asked_numbers(study.references.published):
        by_rule.setdefault(rule_of(number.source, selection), []).append(number)
    verdicts = []
    for rule, numbers in by_rule.items():
        verdicts += judge_numbers(numbers, Samples(table, *rule), found, level)
    frozen = Path(study.references.frozen or ".")
    if selection in (PAPERS, "last") and frozen.is_file():
        verdicts += judge_frozen(load_frozen(frozen), Samples(table), level)
    return verdicts


def rule_of(source: str, selection: str = PAPERS) -> tuple[str, str]:
    """Return the rule that chooses the epoch of our runs for a paper, and the split that leads.

    What is of no paper is at the last epoch.
    """
    paper = paper_of(source)
    own, lead = paper.selection if paper else ("last", "")
    rules = {PAPERS: own, OTHER: "best" if own == "last" else "last"}
    return rules.get(selection, selection), lead


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
    listed, rows = list(numbers), []
    sisters = attrgetter("source", "table", "dataset", "protocol", "backbone", "metric")
    printed = {
        at: (each.sd_points, each.n_runs)
        for at, each in enumerate(listed)
        if each.is_score and each.sd_points is not None and each.n_runs is not None
    }
    spreads = shared_spreads(printed, lambda at: sisters(listed[at]))
    for at, number in enumerate(listed):
        found = Match(None, reason="not a retrieval score of a whole test set: not judged")
        reference: dict[str, Any] = {"reference_mean": nan}
        if number.is_score:
            found = match(stated_by(number), collected, samples.splits)
            reference = {"reference_mean": number.points, "rounding": number.rounding}
            reference |= {"reference_sd": number.sd_points, "reference_n": number.n_runs}
        elif number.metric.endswith(GAIN):
            found = match(stated_by(number), collected, samples.splits)
            reference = {"reference_mean": float(number.value), "rounding": number.rounding}
        cell = found.candidate.cell if found.candidate else None
        side: dict[str, Any] = {
            "loss": number.loss,
            "batch_size": number.batch_size,
            "split": number.protocol,
        }
        if cell:
            side = _our_side(samples, cell, found.split, number.metric)
        margin = margin_of(number.metric, reference["reference_mean"])
        if cell and number.metric.endswith(GAIN):
            side["ours"], margin = _gain(samples, (cell, found.split, number.metric))
            side["planned"] = True
        row = Verdict(
            **{name: getattr(number, name) for name in _OF_NUMBER},
            **{name: value for name, value in reference.items() if value is not None},
            **side,
            dataset=number.dataset,
            published_value=number.value,
            published_unit=number.unit,
            selection=samples.selection,
            margin=margin or nan,
            reference_spread=spreads.get(at, UNKNOWN_SPREAD),
            note=found.reason,
            remark=found.candidate.assumed if found.candidate else "",
        )
        rows.append(row)
    return _decided(rows, level)


def _gain(samples: Samples, of: Score) -> tuple[Sample, float]:
    """Return by how many percent a loss is above SupAP by seed, and the margin of its metric so."""
    cell, split, metric = of[0], of[1], of[2].removesuffix(GAIN)
    plain = samples.sample(replace(cell, loss=PLAIN, base_loss=PLAIN), split, metric)
    gaps = differences_by_seed(samples.sample(cell, split, metric), plain)
    gains = {seed: 100 * gap / plain.by_seed[seed] for seed, gap in gaps.items()}
    margin = 100 * (margin_of(metric, plain.mean) or nan) / plain.mean
    return with_spreads({of: Sample(gains, {})})[of], margin


def judge_frozen(frozen: FrozenRuns, samples: Samples, level: float = ALPHA) -> list[Verdict]:
    """Return the verdicts on frozen runs, from the runs of the same cells now."""
    gaps = {key: differences_by_seed(samples.sample(*key), then) for key, then in frozen.items()}
    pairs = {key: each for key, each in gaps.items() if len(each) >= 2}
    paired_spreads = shared_spreads(
        {key: (spread(each.values()), len(each)) for key, each in pairs.items()}, place
    )
    rows = []
    for key, then in frozen.items():
        (cell, _, metric), pair = key, pairs.get(key, {})
        row = Verdict(
            **_our_side(samples, *key),
            row_label=f"{cell.dataset}/{cell.setting}/{cell.loss}",
            dataset=cell.dataset,
            backbone=cell.setting.backbone,
            metric=metric,
            reference_mean=then.mean,
            reference_sd=then.sd,
            reference_n=then.n,
            selection=samples.selection,
            margin=margin_of(metric, then.mean) or nan,
            rounding=0.0,
            remark=_changes(then, samples.sample(*key)),
            then=then,
            reference_spread=then.spread,
            paired=pair,
            paired_n=len(pair) or nan,
            paired_spread=paired_spreads.get(key, UNKNOWN_SPREAD),
            identical=bool(pair) and max(map(abs, pair.values())) < EQUAL,
        )
        rows.append(row)
    return _decided(rows, level)


def _our_side(samples: Samples, cell: Cell, split: str, metric: str) -> dict[str, Any]:
    """Return the fields of a verdict about our runs of a cell."""
    where = {"cell": cell, "setting": str(cell.setting), "loss": cell.loss, "split": split}
    where |= {"batch_size": cell.batch_size}
    if cell not in samples.statuses:
        return where | {"note": "the frozen cell is not in this study's runs"}
    statuses, ours = samples.statuses[cell], samples.sample(cell, split, metric)
    return where | {
        "ours": ours,
        "statuses": statuses,
        "n_diverged": statuses.get("diverged", 0),
        "planned": ours.n > 0 or (not statuses.get("ok") and metric in samples.metrics),
    }


def _changes(then: Sample, now: Sample) -> str:
    """Return what differs between two samples besides the scores."""
    parts = []
    for key, name in zip(VERSIONS, ("specification", *VERSIONS[1:]), strict=True):
        old, new = then.versions.get(key, ()), now.versions.get(key, ())
        if old and new and set(old) != set(new):
            shown = "" if key == "spec_digest" else f" ({', '.join(old)}; now {', '.join(new)})"
            parts.append(f"{name.replace('_', ' ')} differs{shown}")
    return "; ".join(parts)


def _decided(rows: Sequence[Verdict], level: float) -> list[Verdict]:
    """Return the rows with the verdict on each; a family is of one source and table.

    A verdict before all runs of this look have ended says that it is interim.
    """
    families: dict[tuple[str, str], list[int]] = {}
    for at, each in enumerate(rows):
        families.setdefault((each.source, each.table), []).append(at)
    found = list(rows)
    for places in families.values():
        family = [rows[at] for at in places]
        planned, numbers = sum(each.planned for each in family), _evidence(family)
        tests = compare(numbers, level, planned)
        alone = compare(_evidence(family, plain=True), level, planned)
        published = np.array([each.then is None for each in family])
        changed = marks(numbers, published=published, alpha=level, planned=planned)
        tips = tipping(numbers, level, planned) if published.all() else {}
        size = max(planned, int(np.isfinite(tests.p_drift).sum()))
        for at, (position, row) in enumerate(zip(places, family, strict=True)):
            test, plain = element(tests, at), element(alone, at)
            if test.verdict == UNTESTED:
                test = replace(NO_TEST, difference=test.difference)
            row = replace(row, family_size=size, level=level, test=test, plain=plain)
            words = _without_test(row)
            if words is None:
                worlds = {name: element(mark, at) for name, mark in changed.items()}
                seeds = None
                if test.verdict == UNDECIDED:
                    seeds = seeds_to_decide(element(numbers, at), family=size, alpha=level)
                row = replace(row, marks=worlds, seeds_to_decide=seeds or nan)
                row = replace(row, **{name: each[at] for name, each in tips.items()})
                words = _by_test(row)
            word, reason, direction = words
            ended, runs = row.diverged[1], sum(row.statuses.values())
            interim = word != NOT_RUN and 0 < ended < runs
            decided = bool(row.marks) and word in (REPRODUCED, DRIFTED)
            changes = [name for name, mark in row.marks.items() if mark.verdict != word]
            found[position] = replace(
                row,
                verdict=word,
                interim=interim,
                direction=direction,
                stands=not {*changes} & {*STANDING} if decided else None,
                changes_under=" ".join(changes) if decided else "",
                reason=f"interim, {ended} of {runs} seeds so far: {reason}" if interim else reason,
            )
    return found


def tipping(evidence: Evidence, level: float = ALPHA, planned: int = 0) -> dict[str, Floats]:
    """Return both tipping points of each number of a printed table, by the names of a verdict."""
    at = functools.partial(tipping_points, evidence, alpha=level, planned=planned)
    ours, theirs = (np.asarray(each) for each in (evidence.variance, evidence.reference_variance))
    assumed = np.where(np.isfinite(ours) & np.isfinite(theirs), np.sqrt(theirs / ours), 1.0)
    return {
        "tip_laboratory": at(LABORATORY),
        "tip_ratio": assumed * at(SPREAD),
    }


def _evidence(rows: Sequence[Verdict], *, plain: bool = False) -> Evidence:
    """Return the rows as arrays; ``plain``: with each cell's own spread, not the shared one."""
    found = []
    for row in rows:
        spreads = (row.ours.spread, row.reference_spread, row.paired_spread)
        own, theirs, pairs = (spread.plain if plain else spread for spread in spreads)
        gaps = list(row.paired.values())
        columns = dict(
            ours=row.reference_mean + float(np.mean(gaps)) if gaps else row.ours.mean,
            ours_n=row.ours.n or nan,
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


def _without_test(each: Verdict) -> Words | None:
    if each.note:
        return NOT_RUN, each.note, ""
    if by_divergence := _by_divergence(each):
        return by_divergence
    diverged, ended = each.diverged
    if not each.ours.n:
        if diverged and diverged == ended:
            return INCONCLUSIVE, f"{_share(each.diverged)} diverged: too few to tell", ""
        if each.statuses.get("ok"):
            return NOT_RUN, f"the runs have no {each.metric} on split {each.split}", ""
        counts = ", ".join(f"{count} {status}" for status, count in sorted(each.statuses.items()))
        return NOT_RUN, f"no finished run ({counts})", ""
    if isnan(each.margin):
        why = "the margins name none for this metric"
    elif each.test.verdict != UNTESTED:
        return None
    elif each.ours.n == 1:
        why = "one run, and no spread on either side to judge it by: run at least 2 seeds"
    else:
        why = (
            "all runs are equal, and so are those of all sister cells: no spread to judge by. Only "
            "runs with the same seeds and the same scores are equal without a test"
        )
    return INCONCLUSIVE, "; ".join([why, *_remarks(each)]), ""


def _by_divergence(each: Verdict) -> Words | None:
    """Return the verdict where one side diverges and the other does not, or both always do."""
    now, then = each.diverged, each.reference_diverged
    ours, theirs = diverges(*now, each.level), diverges(*then, each.level)
    runs = f"{_share(now)} of ours diverged"
    if each.then is not None:
        runs += f", {_share(then)} of the frozen ones"
    if ours and theirs:
        always = now[0] == now[1] and then[0] == then[1]
        return (REPRODUCED, f"{runs}: no score on either side", "") if always else None
    if ours:
        return DRIFTED, runs, LOW
    if theirs and now[1]:
        if p_more_divergence(then, now) <= each.level:
            return DRIFTED, runs, HIGH
        if not each.then or not each.then.n:
            return INCONCLUSIVE, runs, ""
    return None


def _by_test(each: Verdict) -> Words:
    test, margin, direction = each.test, each.margin, ""
    interval, pairs = f"[{test.low:.2f}, {test.high:.2f}]", len(each.paired)
    tests = "1 test" if each.family_size == 1 else f"{each.family_size} tests"
    corrected = f"Holm p = {test.p_holm:.2g} of {tests}"
    if test.verdict == REPRODUCED:
        words = f"{interval} lies inside ±{margin:g} points"
    elif test.verdict == DRIFTED:
        direction = HIGH if test.difference > 0 else LOW
        words = f"beyond ±{margin:g} points, {corrected}"
    else:
        if test.low > margin or test.high < -margin:
            lies = f"lies beyond ±{margin:g} points, but {corrected}"
        elif test.low < -margin and test.high > margin:
            lies = f"contains ±{margin:g} points and more"
        else:
            lies = f"crosses the edge of ±{margin:g} points"
        decides = "no number of our seeds would decide if difference and spread stay"
        if isfinite(each.seeds_to_decide):
            decides = f"{each.seeds_to_decide:.0f} seeds would decide if difference and spread stay"
        elif not pairs and not each.reference_n >= 2 and abs(test.difference) < margin:
            decides = "no number of our seeds would decide: the reference is one uncertain value"
        words = f"{interval} {lies}; {decides}"
    kind = f"identical under {pairs} common seeds" if each.identical else f"paired by {pairs} seeds"
    if pairs and not each.identical and test.case != 0:
        kind = "the same difference under every seed, so judged as two groups"
    reasons = [words, *[kind] * bool(pairs), *_remarks(each)]
    if test.verdict == DRIFTED and each.then and "; " in each.remark:
        reasons.append("any of these may be the cause")
    return str(test.verdict), "; ".join(reasons), direction


def _remarks(each: Verdict) -> list[str]:
    without = each.statuses.get("ok", 0) - each.ours.n
    theirs = f"of the frozen runs {_share(each.reference_diverged)} diverged and are left out"
    remarks = {
        each.remark: each.remark,
        f"{_share(each.diverged)} diverged and are left out": each.n_diverged,
        theirs: each.reference_diverged[0],
        f"{without} of the finished runs without a finite score are left out": without > 0,
    }
    return [remark for remark, applies in remarks.items() if applies]


def _share(diverged: tuple[int, int]) -> str:
    gone, runs = diverged
    if gone == runs:
        return "the only run" if runs == 1 else f"all {runs} runs"
    return f"{gone} of {runs} runs"


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
            {
                name: tuple(sorted({row[name] for row in rows if row.get(name)}))
                for name in VERSIONS
            },
            len(diverged.get(key[0], ())),
        )
        for key, rows in sorted(groups.items())
    }
    scored = {key[0] for key, each in samples.items() if each.n}
    found = {key: each for key, each in samples.items() if each.n or key[0] not in scored}
    return with_spreads(found)


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
    diverged = runs[runs["status"] == "diverged"].assign(split="", metric="", value=nan)
    order = [*CELL_COLUMNS, "seed", "split", "metric"]
    frozen = pd.concat([scores, diverged])[FROZEN_COLUMNS].sort_values(order)
    if frozen.empty:
        words = "no finished run has a score, nothing was frozen; run the study first"
        raise ReferenceDataError(words)
    write_text(path, frozen.to_csv(index=False, float_format="%.17g", lineterminator="\n"))
    return len(frozen.drop_duplicates([*CELL_COLUMNS, "seed"]))
