"""Judge each published number and each frozen cell of a study against our runs.

The steps, in order: collect both sides of each number (``sides_of_numbers``, ``sides_of_frozen``);
make columns of them (``frame_of``); test each family and find the reasons (``_family``); make the
table of verdicts (``judged``). ``benchmark.verdicts.verdicts`` declares its columns.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, nan
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmark.core.errors import ConfigError, unknown_name
from benchmark.core.files import write_csv, write_json
from benchmark.core.records import Cell
from benchmark.published.paper import Papers
from benchmark.published.quantities import PLAIN
from benchmark.published.schema import GAIN, PublishedNumber
from benchmark.published.vocabulary import margin_of
from benchmark.runs.run_table import RUNS_TABLE, SCORES_TABLE, RunTable
from benchmark.stats.intervals import Floats, diverges, p_more_divergence, spread
from benchmark.stats.planning import level_of, seeds_to_decide
from benchmark.stats.reproduction import (
    ALPHA,
    DRIFTED,
    LABORATORY,
    REPRODUCED,
    SPREAD,
    STANDING,
    UNTESTED,
    Evidence,
    TestResult,
    compare,
    marks,
    tipping_points,
)
from benchmark.stats.samples import (
    NO_RUNS,
    UNKNOWN_SPREAD,
    VERSIONS,
    BySeed,
    Sample,
    Samples,
    Score,
    Spread,
    differences_by_seed,
    family_of,
    gains_by_seed,
    shared_spreads,
    with_spreads,
)
from benchmark.study import Study
from benchmark.study.data_files import PACKAGE, paper_folders
from benchmark.verdicts.frozen import FrozenRuns, load_frozen
from benchmark.verdicts.matching import Candidates, Match, StudyGrid, match, rests_on, stated_by
from benchmark.verdicts.verdicts import (
    BY_TEST,
    FILED,
    FROZEN,
    NOT_RUN,
    OPEN,
    OTHER,
    PAPERS,
    REMARKED,
    RULES,
    VERDICT,
    Reason,
    read_verdicts,
    typed,
)

EQUAL = 1e-6  # points: what rounding alone can move


@dataclass(frozen=True)
class Sides:
    """A reference number, and the runs on both sides of it.

    facts             columns of ``VERDICT`` that identify the number and say what was stated.
                      ``note``: why there is nothing to compare, or "". ``remark``: what differs
                      between the sides besides the scores. ``planned``: whether the study tests the
                      number once all runs have ended
    cell              of our runs, or of the frozen runs; None when no run belongs to the number
    statuses          number of our runs by status
    then              the frozen runs; None for a printed number
    reference_spread  of one run, moderated with the spreads of the table or of other frozen cells
    paired            differences ours - reference by seed; empty: the sides are two groups
    """

    facts: Mapping[str, Any]
    cell: Cell | None = None
    ours: Sample = NO_RUNS
    statuses: Mapping[str, int] = field(default_factory=dict)
    then: Sample | None = None
    reference_spread: Spread = UNKNOWN_SPREAD
    paired: BySeed = field(default_factory=dict)
    paired_spread: Spread = UNKNOWN_SPREAD

    @property
    def columns(self) -> dict[str, Any]:
        """The numbers of both sides, by the names of the columns of ``frame_of``."""
        then = self.then or NO_RUNS
        ok = self.statuses.get("ok", 0)
        lost = self.statuses.get("diverged", 0)
        theirs = _share(then.diverged, then.diverged + then.n)
        gaps = list(self.paired.values())
        counted = [f"{count} {status}" for status, count in sorted(self.statuses.items())]
        columns = {
            **self.facts,
            "ours_mean": self.ours.mean,
            "ours_sd": self.ours.sd,
            "ours_n": self.ours.n,
            "n_ok": ok,
            "n_diverged": lost,
            "n_ended": ok + lost,
            "n_runs": sum(self.statuses.values()),
            "statuses": ", ".join(counted),
            "now": _share(lost, ok + lost),
            "before": theirs,
            "beside": f", {theirs} of the frozen ones" if self.then else "",
            "frozen": self.then is not None,
            "then_n": then.n,
            "then_diverged": then.diverged,
            "paired_n": len(gaps) or nan,
            "paired_mean": float(np.mean(gaps)) if gaps else nan,
            "identical": bool(gaps) and max(map(abs, gaps)) < EQUAL,
        }
        spreads = {
            "ours": self.ours.spread,
            "reference": self.reference_spread,
            "paired": self.paired_spread,
        }
        for side, spread_of_one in spreads.items():
            columns[f"{side}_spread"] = spread_of_one.sd
            for name in ("df", "own", "own_df"):
                columns[f"{side}_{name}"] = getattr(spread_of_one, name)
        return columns


def frame_of(sides: Iterable[Sides]) -> pd.DataFrame:
    """Return a row for each number, with both sides as columns."""
    return pd.DataFrame([side.columns for side in sides])


def judge_study(
    grid: StudyGrid, table: RunTable, selections: Iterable[str]
) -> dict[str, pd.DataFrame]:
    """Return the verdicts on all reference numbers of a study, for each of ``selections``.

    "paper" judges the numbers of a paper at the epoch that its authors report, or at the last one
    if they report none. "other" judges them at the other epoch: the last one, or the best one of
    each metric. The other selections hold for all papers alike. Frozen runs are judged at their
    last epoch, with "paper" and "last" alone. A missing file of frozen runs is not an error.
    """
    level = level_of(grid.study)
    return {
        selection: judged(sides, level)
        for selection, sides in sides_of_study(grid, table, selections).items()
    }


def sides_of_study(
    grid: StudyGrid, table: RunTable, selections: Iterable[str]
) -> dict[str, list[Sides]]:
    """Return both sides of all reference numbers of a study, for each of ``selections``."""
    for selection in selections:
        if selection not in RULES:
            raise ConfigError("--selection", [unknown_name("selection rule", selection, RULES)])
    asked = grid.asked
    samples = functools.cache(functools.partial(Samples, table))
    frozen = Path(grid.study.references.frozen or ".")
    sides: dict[str, list[Sides]] = {}
    for selection in selections:
        by_rule: dict[tuple[str, str], list[PublishedNumber]] = {}
        for number in asked:
            by_rule.setdefault(rule_of(grid.papers, number.source, selection), []).append(number)
        sides[selection] = []
        for rule, numbers in by_rule.items():
            sides[selection] += sides_of_numbers(numbers, samples(*rule), grid.candidates)
        if selection in (PAPERS, "last") and frozen.is_file():
            sides[selection] += sides_of_frozen(load_frozen(frozen), samples("last", ""))
    return sides


def rule_of(papers: Papers, source: str, selection: str = PAPERS) -> tuple[str, str]:
    """Return the rule that chooses the epoch of our runs for a paper, and the split that leads.

    A source that is not a paper has the last epoch.
    """
    paper = papers.of(source)
    rule, lead = paper.selection if paper else ("last", "")
    if selection == OTHER:
        rule = "best" if rule == "last" else "last"
    elif selection != PAPERS:
        rule = selection
    return rule, lead


def sides_of_numbers(
    numbers: Sequence[PublishedNumber], samples: Samples, candidates: Candidates
) -> list[Sides]:
    """Return published numbers beside the runs that belong to them.

    Printed spreads of sister cells are shared.
    """
    collected = [one for cell, one in candidates.items() if cell in samples.statuses]
    sisters = attrgetter("source", "table", "dataset", "protocol", "backbone", "metric")
    printed = {}
    for at, number in enumerate(numbers):
        if number.judged and number.sd_points is not None and number.n_runs is not None:
            printed[at] = (number.sd_points, number.n_runs)
    spreads = shared_spreads(printed, lambda at: sisters(numbers[at]))
    sides = []
    for at, number in enumerate(numbers):
        matched = Match(None, reason="not a retrieval score of a whole test set: not judged")
        facts = {**vars(number), "setting": "", "split": number.protocol, "planned": False}
        facts |= {"published_value": str(number.value), "published_unit": number.unit}
        facts |= dict.fromkeys(("reference_mean", "reference_sd", "reference_n", "rounding"), nan)
        if number.judged:
            matched = match(stated_by(number), collected, samples.splits)
            facts["rounding"] = number.rounding
            facts["reference_mean"] = number.points
            facts["reference_sd"] = nan if number.sd_points is None else number.sd_points
            facts["reference_n"] = number.n_runs or nan
        margin = margin_of(number.metric, facts["reference_mean"])
        side = Sides(facts)
        remark = ""
        if matched.candidate:
            remark = rests_on(number, matched.candidate)
            score = (matched.candidate.cell, matched.split, number.metric)
            side = _our_side(samples, *score)
            if number.kind.measured == "gains":
                gains, margin = _gain(samples, score)
                side = replace(side, ours=gains, facts={**side.facts, "planned": True})
        facts |= side.facts
        facts["margin"] = margin
        facts["selection"] = samples.selection
        facts["note"] = matched.reason
        facts["remark"] = remark
        spread = spreads.get(at, UNKNOWN_SPREAD)
        sides.append(replace(side, facts=facts, reference_spread=spread))
    return sides


def _gain(samples: Samples, score: Score) -> tuple[Sample, float]:
    """Return by how many percent a loss is above SupAP by seed, and the margin in such percent."""
    cell, split, name = score
    metric = name.removesuffix(GAIN)
    plain = samples.sample(replace(cell, loss=PLAIN, base_loss=PLAIN), split, metric)
    gains = gains_by_seed(samples.sample(cell, split, metric), plain)
    margin = 100 * margin_of(metric, plain.mean) / plain.mean
    return with_spreads({score: Sample(gains, {})})[score], margin


def sides_of_frozen(frozen: FrozenRuns, samples: Samples) -> list[Sides]:
    """Return frozen runs beside the runs of the same cells now."""
    pairs = {}
    spreads_of_pairs = {}
    for key, then in frozen.items():
        differences = differences_by_seed(samples.sample(*key), then)
        if len(differences) >= 2:
            pairs[key] = differences
            spreads_of_pairs[key] = (spread(differences.values()), len(differences))
    paired_spreads = shared_spreads(spreads_of_pairs, family_of)
    sides = []
    for key, then in frozen.items():
        cell, _, metric = key
        ours = _our_side(samples, *key)
        facts = {
            **dict.fromkeys(("source", "table", "provenance"), FROZEN),
            "row_label": f"{cell.dataset}/{cell.setting}/{cell.loss}",
            "dataset": cell.dataset,
            "backbone": cell.setting.backbone,
            **dict.fromkeys(("embedding_dim", "published_value", "published_unit", "note"), ""),
            "metric": metric,
            "line": nan,
            "reference_mean": then.mean,
            "reference_sd": then.sd,
            "reference_n": then.n,
            "selection": samples.selection,
            "margin": margin_of(metric, then.mean),
            "rounding": 0.0,
            "remark": _changes(then, samples.sample(*key)),
            **ours.facts,
        }
        side = replace(
            ours,
            facts=facts,
            then=then,
            reference_spread=then.spread,
            paired=pairs.get(key, {}),
            paired_spread=paired_spreads.get(key, UNKNOWN_SPREAD),
        )
        sides.append(side)
    return sides


def _our_side(samples: Samples, cell: Cell, split: str, metric: str) -> Sides:
    """Return our runs of a cell alone."""
    facts = {"setting": str(cell.setting), "loss": cell.loss, "batch_size": cell.batch_size}
    facts |= {"split": split, "planned": False}
    if cell not in samples.statuses:
        return Sides(facts | {"note": "the frozen cell is not in this study's runs"}, cell)
    statuses = samples.statuses[cell]
    ours = samples.sample(cell, split, metric)
    is_pending = not statuses.get("ok") and metric in samples.metrics
    facts["planned"] = ours.n > 0 or is_pending
    return Sides(facts, cell, ours, statuses)


def _changes(then: Sample, now: Sample) -> str:
    """Return what differs between two samples besides the scores."""
    changes = []
    for name in VERSIONS:
        old = then.versions.get(name, ())
        new = now.versions.get(name, ())
        if not old or not new or set(old) == set(new):
            continue
        if name == "spec_digest":
            changes.append("specification differs")
        else:
            shown = f"({', '.join(old)}; now {', '.join(new)})"
            changes.append(f"{name.replace('_', ' ')} differs {shown}")
    return "; ".join(changes)


def judged(sides: Iterable[Sides], level: float = ALPHA) -> pd.DataFrame:
    """Return the verdicts on numbers, one row each, with the columns of ``VERDICT``.

    The numbers of one source and table are a family of tests. A verdict is interim until all runs
    of the current look have ended.
    """
    rows = frame_of(sides)
    if rows.empty:
        return typed({})
    families = rows.groupby(["source", "table"], sort=False)
    rows = pd.concat([_family(family, level) for _, family in families]).sort_index()
    rows["reason"] = list(map(_sentence, rows.itertuples()))
    columns = {}
    for name, column in VERDICT.items():
        columns[name] = rows[name] if column.of is None else column.of(rows)
    return typed(columns)


def _family(rows: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return the numbers of one family with the tests, the verdict and how far it stands."""
    evidence, test, worlds = tests_of(rows, level)
    why = reasons(rows, test, level)
    word = np.array([reason.word for reason in why])
    by_test = np.array([reason in BY_TEST for reason in why])
    is_open = np.array([reason in OPEN for reason in why])
    decided = by_test & np.isin(word, (REPRODUCED, DRIFTED))
    planned = int(rows["planned"].sum())
    changed = {name: world.verdict != word for name, world in worlds.items()}
    falls = np.any([changed[name] for name in STANDING], axis=0)
    stands = (~falls).astype(object)
    stands[~decided] = None
    tips = dict.fromkeys(("tip_laboratory", "tip_ratio"), np.full(len(rows), nan))
    if not rows["frozen"].any():
        tips = _tipping_points(evidence, level, planned)
    size = max(planned, int(np.isfinite(test.p_drift).sum()))
    needed = seeds_to_decide(evidence, family=size, alpha=level)
    changes_under = []
    for at, is_decided in enumerate(decided):
        names = [name for name in changed if is_decided and changed[name][at]]
        changes_under.append(" ".join(names))
    tested = test.verdict != UNTESTED
    started = rows.n_ended > 0
    ended = rows.n_ended >= rows.n_runs
    return rows.assign(
        difference=test.difference,
        case=test.case,
        se=np.where(tested, test.se, nan),
        df=np.where(tested, test.df, nan),
        ci_low=test.low,
        ci_high=test.high,
        p_equivalence=test.p_equivalence,
        p_drift=test.p_drift,
        p_holm=test.p_holm,
        **{name: np.where(by_test, values, nan) for name, values in tips.items()},
        family_size=size,
        level=level,
        seeds_to_decide=np.where(is_open, needed, nan),
        why=why,
        verdict=word,
        direction=[reason.direction for reason in why],
        interim=(word != NOT_RUN) & started & ~ended,
        stands=stands,
        changes_under=changes_under,
    )


def tests_of(
    rows: pd.DataFrame, level: float
) -> tuple[Evidence, TestResult, dict[str, TestResult]]:
    """Return the evidence on a family, its tests, and those in the world of each mark."""
    planned = int(rows["planned"].sum())
    evidence = evidence_of(rows)
    worlds = marks(evidence, published=~rows["frozen"], alpha=level, planned=planned)
    return evidence, compare(evidence, level, planned), worlds


def _tipping_points(evidence: Evidence, level: float, planned: int) -> dict[str, Floats]:
    """Return both tipping points of each number of a printed table, by the names of a verdict."""
    of_mark = functools.partial(tipping_points, evidence, alpha=level, planned=planned)
    ratio = np.sqrt(np.asarray(evidence.reference_variance) / np.asarray(evidence.variance))
    assumed = np.where(np.isfinite(ratio), ratio, 1.0)
    return {"tip_laboratory": of_mark(LABORATORY), "tip_ratio": assumed * of_mark(SPREAD)}


def evidence_of(rows: pd.DataFrame, *, plain: bool = False) -> Evidence:
    """Return rows of ``frame_of`` as evidence; ``plain``: with each cell's own spread, unshared."""
    spread = "own" if plain else "spread"
    df = "own_df" if plain else "df"
    from_pairs = rows.reference_mean + rows.paired_mean
    return Evidence(
        ours=np.where(rows.paired_n > 0, from_pairs, rows.ours_mean),
        ours_n=np.where(rows.ours_n > 0, rows.ours_n, nan),
        reference=rows.reference_mean,
        variance=rows[f"ours_{spread}"] ** 2,
        df=rows[f"ours_{df}"],
        reference_n=rows.reference_n,
        reference_variance=rows[f"reference_{spread}"] ** 2,
        reference_df=rows[f"reference_{df}"],
        paired_n=rows.paired_n,
        paired_variance=rows[f"paired_{spread}"] ** 2,
        paired_df=rows[f"paired_{df}"],
        identical=rows.identical,
        margin=rows.margin,
        slack=np.nan_to_num(rows.rounding),
    )


def reasons(rows: pd.DataFrame, test: TestResult, level: float) -> NDArray[np.object_]:
    """Return the ``Reason`` of each verdict. Reasons that need no test are asked first.

    Divergence decides if one side diverges and the other does not, or if every run of both sides
    diverged.
    """
    now = list(zip(rows.n_diverged, rows.n_ended, strict=True))
    then_runs = rows.then_diverged + rows.then_n
    then = list(zip(rows.then_diverged, then_runs, strict=True))
    ours_lost = np.array([diverges(*counts, level) for counts in now])
    theirs_lost = np.array([diverges(*counts, level) for counts in then])
    always = (rows.n_ok == 0) & (rows.then_n == 0)
    cured = theirs_lost & ~ours_lost & (rows.n_ended > 0)
    surely = [
        is_cured and p_more_divergence(before, after) <= level
        for is_cured, before, after in zip(cured, then, now, strict=True)
    ]
    none = rows.ours_n == 0
    margin = rows.margin
    cases = {
        Reason.NOT_MATCHED: rows.note != "",
        Reason.BOTH_DIVERGE: ours_lost & theirs_lost & always,
        Reason.OURS_DIVERGE: ours_lost & ~theirs_lost,
        Reason.THEIRS_DIVERGED: np.array(surely),
        Reason.PERHAPS_DIVERGED: cured & (rows.then_n == 0),
        Reason.TOO_FEW: none & (rows.n_diverged > 0) & (rows.n_ok == 0),
        Reason.NO_METRIC: none & (rows.n_ok > 0),
        Reason.NOT_FINISHED: none,
        Reason.INSIDE: test.verdict == REPRODUCED,
        Reason.ABOVE: (test.verdict == DRIFTED) & (test.difference > 0),
        Reason.BELOW: test.verdict == DRIFTED,
        Reason.ONE_RUN: (test.verdict == UNTESTED) & (rows.ours_n == 1),
        Reason.NO_SPREAD: test.verdict == UNTESTED,
        Reason.BEYOND_ALONE: (test.low > margin) | (test.high < -margin),
        Reason.TOO_WIDE: (test.low < -margin) & (test.high > margin),
    }
    choices: list[Any] = [*cases, Reason.ON_THE_EDGE]
    why = np.select(list(cases.values()), choices[:-1], choices[-1])
    return np.asarray(why, object)


def _sentence(row: Any) -> str:
    """Return the reason of a verdict in words, from a row of ``_family``."""
    tests = "1 test" if row.family_size == 1 else f"{row.family_size} tests"
    parts = [row.why.sentence.format(tests=tests, **row._asdict())]
    if row.why in OPEN:
        parts.append(_outlook(row))
    if row.why in BY_TEST and row.paired_n > 0:
        kind = f"paired by {row.paired_n:.0f} seeds"
        if row.identical:
            kind = f"identical under {row.paired_n:.0f} common seeds"
        elif row.case != 0:
            kind = "the same difference under every seed, so judged as two groups"
        parts.append(kind)
    if row.why in REMARKED:
        parts += _remarks(row)
    is_drift = row.why in (Reason.BELOW, Reason.ABOVE)
    if is_drift and row.frozen and "; " in row.remark:
        parts.append("any of these may be the cause")
    reason = "; ".join(parts)
    if row.interim:
        return f"interim, {row.n_ended} of {row.n_runs} seeds so far: {reason}"
    return reason


def _outlook(row: Any) -> str:
    """Return how many seeds would decide an open verdict."""
    if isfinite(row.seeds_to_decide):
        return f"{row.seeds_to_decide:.0f} seeds would decide if difference and spread stay"
    several = row.paired_n > 0 or row.reference_n >= 2
    if not several and abs(row.difference) < row.margin:
        return "no number of our seeds would decide: the reference is one uncertain value"
    return "no number of our seeds would decide if difference and spread stay"


def _remarks(row: Any) -> list[str]:
    """Return what differs between the sides, and which runs are left out."""
    parts = [row.remark] if row.remark else []
    if row.n_diverged:
        parts.append(f"{row.now} diverged and are left out")
    if row.then_diverged:
        parts.append(f"of the frozen runs {row.before} diverged and are left out")
    without = row.n_ok - row.ours_n
    if without > 0:
        parts.append(f"{without} of the finished runs without a finite score are left out")
    return parts


def _share(gone: int, runs: int) -> str:
    if gone == runs:
        return "the only run" if runs == 1 else f"all {runs} runs"
    return f"{gone} of {runs} runs"


FILES = {PAPERS: "verdicts.csv", OTHER: "verdicts_other.csv"}
JUDGED = "verdicts.json"  # of what the files were judged


def write_verdicts(grid: StudyGrid, table: RunTable, folder: Path) -> dict[str, pd.DataFrame]:
    """Write the verdicts at both epochs of the papers into a study's folder; return both.

    Numbers are rounded to the ten digits of the files, so that tables and files agree.
    """
    (folder / JUDGED).unlink(missing_ok=True)
    by_selection = judge_study(grid, table, FILES)
    for selection, verdicts in by_selection.items():
        filed = write_csv(folder / FILES[selection], verdicts[FILED])
        by_selection[selection] = filed.join(verdicts.drop(columns=FILED))
    write_json(folder / JUDGED, {"judged_of": _state(grid.study, folder)})
    return by_selection


def verdicts_of(grid: StudyGrid, table: RunTable, folder: Path, selection: str) -> pd.DataFrame:
    """Return the verdicts on a study, from its folder, or judged again if the files are outdated.

    The files are up to date if the same rules judged the same runs, references and study.
    """
    path = folder / FILES.get(selection, "")
    state = folder / JUDGED
    if path.is_file() and state.is_file():
        judged_of = json.loads(state.read_text(encoding="utf-8"))["judged_of"]
        if judged_of == _state(grid.study, folder):
            return read_verdicts(path)
    return judge_study(grid, table, [selection])[selection]


def _state(study: Study, folder: Path) -> str:
    """Return a digest of all that decides verdicts: runs, references, the study, and the rules."""
    files = [folder / RUNS_TABLE, folder / SCORES_TABLE, Path(study.references.frozen or "")]
    for judging_folder in (PACKAGE.parent, *paper_folders().values()):
        for pattern in ("*.py", "*.yaml", "*.csv"):
            files += sorted(judging_folder.rglob(pattern))
    digest = hashlib.sha256(repr(study).encode())
    for path in files:
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()[:16]
