"""Judge each published number and each frozen cell of a study against our runs.

The steps, in order: collect both sides of each number (``pairs_of_numbers``, ``pairs_of_frozen``);
make columns of them (``frame_of``); test each family (``_family``,
``benchmark.verdicts.pair_tests``); make the table of verdicts (``judged``).
``benchmark.verdicts.verdicts`` declares its columns.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isfinite, nan
from operator import attrgetter
from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.core.errors import ConfigError, unknown_name
from benchmark.core.files import write_csv, write_json
from benchmark.core.registry import plugin_files
from benchmark.published.paper import Papers
from benchmark.published.quantities import PLAIN
from benchmark.published.schema import GAIN, PublishedNumber
from benchmark.published.vocabulary import margin_of
from benchmark.runs.run_table import RUNS_TABLE, SCORES_TABLE, RunTable
from benchmark.stats.intervals import spread
from benchmark.stats.planning import level_of
from benchmark.stats.reproduction import (
    ALPHA,
)
from benchmark.stats.samples import (
    UNKNOWN_SPREAD,
    VERSIONS,
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
from benchmark.verdicts.matching import Candidates, StudyGrid, match, rests_on, stated_by
from benchmark.verdicts.pair_tests import declared, tests_in_order
from benchmark.verdicts.pairs import KINDS, Pair, frame_of, typed
from benchmark.verdicts.verdicts import (
    BY_TEST,
    FROZEN,
    NOT_RUN,
    OPEN,
    OTHER,
    PAPERS,
    REMARKED,
    RULES,
    UNFILED,
    VERDICT,
    JudgedPair,
    Reason,
)

# What the equivalence test says of its own verdict, where another test decides.
NOT_SAID = {
    "stands": None,
    "changes_under": "",
    "tip_laboratory": nan,
    "tip_ratio": nan,
    "seeds_to_decide": nan,
}


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
        selection: judged(pairs, level)
        for selection, pairs in pairs_of_study(grid, table, selections).items()
    }


def pairs_of_study(
    grid: StudyGrid, table: RunTable, selections: Iterable[str]
) -> dict[str, list[Pair]]:
    """Return both sides of all reference numbers of a study, for each of ``selections``."""
    for selection in selections:
        if selection not in RULES:
            raise ConfigError("--selection", [unknown_name("selection rule", selection, RULES)])
    asked = grid.asked
    samples = functools.cache(functools.partial(Samples, table))
    frozen = Path(grid.study.references.frozen or ".")
    pairs: dict[str, list[Pair]] = {}
    for selection in selections:
        by_rule: dict[tuple[str, str], list[PublishedNumber]] = {}
        for number in asked:
            by_rule.setdefault(rule_of(grid.papers, number.source, selection), []).append(number)
        pairs[selection] = []
        for rule, numbers in by_rule.items():
            pairs[selection] += pairs_of_numbers(numbers, samples(*rule), grid.candidates)
        if selection in (PAPERS, "last") and frozen.is_file():
            pairs[selection] += pairs_of_frozen(load_frozen(frozen), samples("last", ""))
    return pairs


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


def pairs_of_numbers(
    numbers: Sequence[PublishedNumber], samples: Samples, candidates: Candidates
) -> list[Pair]:
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
    pairs = []
    for at, number in enumerate(numbers):
        pair = _printed_pair(number, samples.selection, spreads.get(at, UNKNOWN_SPREAD))
        if number.judged:
            matched = match(stated_by(number), collected, samples.splits)
            pair = replace(
                pair,
                note=matched.reason,
                reference_mean=number.points,
                rounding=number.rounding,
                margin=margin_of(number.metric, number.points),
            )
            if matched.candidate:
                pair = replace(pair, remark=rests_on(number, matched.candidate))
                score = (matched.candidate.cell, matched.split, number.metric)
                pair = _beside_runs(pair, samples, score)
                if number.kind.measured == "gains":
                    gains, margin = _gain(samples, score)
                    pair = replace(pair, ours=gains, margin=margin, planned=True)
        pairs.append(pair)
    return pairs


def _printed_pair(number: PublishedNumber, selection: str, spread_of_one: Spread) -> Pair:
    """Return a published number before it is matched with runs."""
    sd = number.sd_points if number.judged else None
    return Pair(
        source=number.source,
        table=number.table,
        row_label=number.row_label,
        provenance=number.provenance,
        dataset=number.dataset,
        backbone=number.backbone,
        embedding_dim=number.embedding_dim,
        metric=number.metric,
        loss=number.loss,
        batch_size=number.batch_size or nan,
        split=number.protocol,
        published_value=str(number.value),
        published_unit=number.unit,
        line=number.line,
        selection=selection,
        reference_sd=nan if sd is None else sd,
        reference_n=number.n_runs or nan if number.judged else nan,
        reference_spread=spread_of_one,
        margin=margin_of(number.metric),
        note="not a retrieval score of a whole test set: not judged",
    )


def _gain(samples: Samples, score: Score) -> tuple[Sample, float]:
    """Return by how many percent a loss is above SupAP by seed, and the margin in such percent."""
    cell, split, name = score
    metric = name.removesuffix(GAIN)
    plain = samples.sample(replace(cell, loss=PLAIN, base_loss=PLAIN), split, metric)
    gains = gains_by_seed(samples.sample(cell, split, metric), plain)
    margin = 100 * margin_of(metric, plain.mean) / plain.mean
    return with_spreads({score: Sample(gains, {})})[score], margin


def pairs_of_frozen(frozen: FrozenRuns, samples: Samples) -> list[Pair]:
    """Return frozen runs beside the runs of the same cells now."""
    differences = {}
    spreads = {}
    for key, then in frozen.items():
        gaps = differences_by_seed(samples.sample(*key), then)
        if len(gaps) >= 2:
            differences[key] = gaps
            spreads[key] = (spread(gaps.values()), len(gaps))
    paired_spreads = shared_spreads(spreads, family_of)
    pairs = []
    for key, then in frozen.items():
        cell, split, metric = key
        pair = Pair(
            source=FROZEN,
            table=FROZEN,
            row_label=f"{cell.dataset}/{cell.setting}/{cell.loss}",
            provenance=FROZEN,
            dataset=cell.dataset,
            backbone=cell.setting.backbone,
            metric=metric,
            loss=cell.loss,
            batch_size=cell.batch_size,
            split=split,
            selection=samples.selection,
            reference_mean=then.mean,
            reference_sd=then.sd,
            reference_n=then.n,
            reference_spread=then.spread,
            rounding=0.0,
            margin=margin_of(metric, then.mean),
            remark=_changes(then, samples.sample(*key)),
            then=then,
            paired=differences.get(key, {}),
            paired_spread=paired_spreads.get(key, UNKNOWN_SPREAD),
        )
        pairs.append(_beside_runs(pair, samples, key))
    return pairs


def _beside_runs(pair: Pair, samples: Samples, score: Score) -> Pair:
    """Return a pair with our runs of a cell."""
    cell, split, metric = score
    pair = replace(
        pair,
        cell=cell,
        setting=str(cell.setting),
        loss=cell.loss,
        batch_size=cell.batch_size,
        split=split,
    )
    if cell not in samples.statuses:
        return replace(pair, note="the frozen cell is not in this study's runs")
    statuses = samples.statuses[cell]
    ours = samples.sample(*score)
    is_pending = not statuses.get("ok") and metric in samples.metrics
    return replace(pair, ours=ours, statuses=statuses, planned=ours.n > 0 or is_pending)


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


def judged(pairs: Sequence[Pair], level: float = ALPHA) -> pd.DataFrame:
    """Return the verdicts on numbers, one row each, with the columns of ``VERDICT``.

    The numbers of one source and table are a family of tests. A verdict is interim until all runs
    of the current look have ended.
    """
    rows = frame_of(pairs)
    if rows.empty:
        return typed({}, declared())
    families = rows.groupby(["source", "table"], sort=False)
    rows = pd.concat([_family(family, level) for _, family in families]).sort_index()
    found = rows[[*JudgedPair._fields[1:]]].itertuples(index=False, name=None)
    sentences = []
    for pair, values in zip(pairs, found, strict=True):
        sentences.append(_sentence(JudgedPair(pair, *values)))
    rows["reason"] = sentences
    for name, column in VERDICT.items():
        if column.of and name not in rows:
            rows[name] = column.of(rows)
    return typed(rows, declared())


def _family(rows: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return the numbers of one family with the columns of all tests, and the verdicts."""
    found = [entry.target(rows, level) for entry in tests_in_order()]
    why = found[-1].why
    for each in found[::-1]:
        rows = rows.assign(**each.columns)
        why = np.where(pd.isna(each.why), why, each.why)
    word = np.array([reason.word for reason in why])
    rows = rows.assign(
        level=level,
        why=why,
        verdict=word,
        direction=[reason.direction for reason in why],
        interim=(word != NOT_RUN) & (rows.n_ended > 0) & (rows.n_ended < rows.n_runs),
    )
    by_other = why != found[-1].why
    for name, nothing in NOT_SAID.items():
        rows[name] = rows[name].mask(by_other, nothing)
    return rows


def _sentence(row: JudgedPair) -> str:
    """Return the reason of a verdict in words."""
    pair = row.pair
    parts = [row.why.sentence(row)]
    if row.why in OPEN:
        parts.append(_outlook(row))
    if row.why in BY_TEST and pair.paired:
        kind = f"paired by {len(pair.paired)} seeds"
        if pair.identical:
            kind = f"identical under {len(pair.paired)} common seeds"
        elif row.case != 0:
            kind = "the same difference under every seed, so judged as two groups"
        parts.append(kind)
    if row.why in REMARKED:
        parts += _remarks(pair)
    is_drift = row.why in (Reason.BELOW, Reason.ABOVE)
    if is_drift and pair.then and "; " in pair.remark:
        parts.append("any of these may be the cause")
    reason = "; ".join(parts)
    if row.interim:
        return f"interim, {pair.n_ended} of {pair.n_runs} seeds so far: {reason}"
    return reason


def _outlook(row: JudgedPair) -> str:
    """Return how many seeds would decide an open verdict."""
    pair = row.pair
    if isfinite(row.seeds_to_decide):
        return f"{row.seeds_to_decide:.0f} seeds would decide if difference and spread stay"
    several = pair.paired or pair.reference_n >= 2
    if not several and abs(row.difference) < pair.margin:
        return "no number of our seeds would decide: the reference is one uncertain value"
    return "no number of our seeds would decide if difference and spread stay"


def _remarks(pair: Pair) -> list[str]:
    """Return what differs between the sides, and which runs are left out."""
    parts = [pair.remark] if pair.remark else []
    if pair.n_diverged:
        parts.append(f"{pair.now} diverged and are left out")
    if pair.theirs.diverged:
        parts.append(f"of the frozen runs {pair.before} diverged and are left out")
    without = pair.n_ok - pair.ours.n
    if without > 0:
        parts.append(f"{without} of the finished runs without a finite score are left out")
    return parts


FILES = {PAPERS: "verdicts.csv", OTHER: "verdicts_other.csv"}
JUDGED = "verdicts.json"  # of what the files were judged


def write_verdicts(grid: StudyGrid, table: RunTable, folder: Path) -> dict[str, pd.DataFrame]:
    """Write the verdicts at both epochs of the papers into a study's folder; return both.

    Numbers are rounded to the ten digits of the files, so that tables and files agree.
    """
    (folder / JUDGED).unlink(missing_ok=True)
    by_selection = judge_study(grid, table, FILES)
    for selection, verdicts in by_selection.items():
        filed = write_csv(folder / FILES[selection], verdicts.drop(columns=UNFILED))
        by_selection[selection] = filed.join(verdicts[UNFILED])
    write_json(folder / JUDGED, {"judged_of": _state(grid.study, folder)})
    return by_selection


def read_verdicts(path: Path) -> pd.DataFrame:
    """Return the verdicts in a file that ``write_verdicts`` wrote, without what it leaves out."""
    filed = [item for item in declared().items() if item[1].filed]
    types = {name: KINDS[column.kind] for name, column in filed}
    numbers = [name for name, type_of in types.items() if type_of == "float64"]
    answers = {"True": True, "False": False, "": None}
    standing = types.pop("stands")
    verdicts = pd.read_csv(
        path,
        dtype=types,
        converters={"stands": answers.get},
        keep_default_na=False,
        na_values={name: [""] for name in numbers},
    )
    return verdicts.astype({"stands": standing})


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
    files += plugin_files()
    for judging_folder in (PACKAGE.parent, *paper_folders().values()):
        for pattern in ("*.py", "*.yaml", "*.csv"):
            files += sorted(judging_folder.rglob(pattern))
    digest = hashlib.sha256(repr(study).encode())
    for path in files:
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()[:16]
