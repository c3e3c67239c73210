"""The verdict on a reference number: its row of ``verdicts.csv``, its word with a reason, and the
whole calculation behind it as text."""

from __future__ import annotations

import difflib
import fnmatch
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from benchmark.core.errors import ConfigError
from benchmark.core.records import Cell
from benchmark.metrics.metric import display_name
from benchmark.runs.run_table import RunTable
from benchmark.stats.intervals import diverges, p_more_divergence
from benchmark.stats.reproduction import ALPHA, MARKS, STANDARD_ERRORS, TestResult, applies
from benchmark.stats.samples import NO_RUNS, UNKNOWN_SPREAD, Sample, Spread

FROZEN = "frozen"
REPRODUCED = "reproduced"
DRIFTED = "drifted"
INCONCLUSIVE = "inconclusive"
NOT_RUN = "not_run"
NOT_ASKED = "not_asked"

# In the order in which they are counted and shown.
VERDICTS: dict[str, str] = {
    REPRODUCED: "the interval of ours minus reference lies inside the margin",
    DRIFTED: "the difference is beyond the margin, by a test after Holm over the table",
    INCONCLUSIVE: "the runs at hand decide neither way",
    NOT_RUN: "no run of a study belongs to this reference",
}

# The rules by which the epoch of a run is chosen, in words.
EPOCHS = {
    "last": "at the last epoch",
    "best": "at the best test epoch of each metric",
    "one_best": "at the one test epoch with the best mAP@R",
}

LOW, HIGH = "low", "high"  # direction of a drift: ours below or above the reference

SUPPORTED = "supported"
CONTRADICTED = "contradicted"

CLAIM_VERDICTS: dict[str, str] = {
    SUPPORTED: "the test that stands for the sentence agrees with it",
    CONTRADICTED: "the test that stands for the sentence shows the opposite",
    INCONCLUSIVE: "the runs at hand decide neither way",
    NOT_RUN: "the runs that the sentence needs are not there",
    NOT_ASKED: "the runs have another dataset or backbone than the paper: they cannot answer",
}


@dataclass(frozen=True)
class Verdict:
    """A reference number beside our runs: first the columns of the file, then what is behind them.

    Scores, spreads and differences are in percentage points; NaN stands for what is not known.

    cell           of our runs, or of the frozen ones; None when no run belongs to the number
    then           the frozen runs
    spread         of one run of ours, moderated with its sister cells; that of the reference with
                   those of the table, or of the other frozen cells
    paired         differences ours - reference by seed; without any, the sides are two groups
    identical      all scores of the two cells are equal under every common seed
    statuses       number of our runs by status
    planned        whether the study tests this number once all of its runs are there
    note           why there is nothing to compare, or ""
    remark         what differs between the sides besides the scores
    test           None where nothing could be tested
    plain          the same test with each cell's own spread; None where that is not known
    marks          by name of ``benchmark.stats.reproduction.MARKS``: the test if that assumption
                   fails; none where the verdict does not follow from a test
    """

    source: str = FROZEN  # the paper's version, or "frozen"
    table: str = FROZEN  # the paper's table, or "frozen"
    row_label: str = ""  # as printed, or the frozen cell
    provenance: str = FROZEN
    dataset: str = ""
    setting: str = ""
    backbone: str = ""  # as the reference states it
    embedding_dim: str | None = None
    loss: str = ""  # of our variant, or the reference's where no run belongs to it
    batch_size: int | None = None
    split: str = ""
    metric: str = ""
    published_value: Decimal | None = None  # as printed, in published_unit
    published_unit: str | None = None
    reference_mean: float = np.nan
    reference_sd: float = np.nan
    reference_n: float = np.nan  # not stated: counts as one draw
    ours_mean: float = np.nan
    ours_sd: float = np.nan
    ours_n: int = 0
    ours_spread: float = np.nan  # moderated with sister cells
    n_diverged: int = 0
    selection: str = "last"
    paired_n: float = np.nan  # seeds compared one by one
    difference: float = np.nan  # ours - reference
    se: float = np.nan
    df: float = np.nan
    ci_low: float = np.nan
    ci_high: float = np.nan
    margin: float = np.nan
    rounding: float = np.nan
    p_equivalence: float = np.nan
    p_drift: float = np.nan
    p_holm: float = np.nan
    family_size: int = 0  # tests that the plan has for the table
    level: float = np.nan  # of each test; below 0.05 where looks are planned
    verdict: str = ""
    interim: bool = False  # runs of this look are still to come that may change the verdict
    direction: str = ""  # of a drift: low or high
    stands: bool | None = None
    changes_under: str = ""  # names of MARKS
    reason: str = ""
    seeds_to_decide: float = np.nan  # of ours, if difference and spread stay
    line: int | None = None  # in the paper's results.csv

    cell: Cell | None = None
    ours: Sample = NO_RUNS
    then: Sample | None = None
    spread: Spread = UNKNOWN_SPREAD
    reference_spread: Spread = UNKNOWN_SPREAD
    paired: Mapping[int, float] = field(default_factory=dict)
    paired_spread: Spread = UNKNOWN_SPREAD
    identical: bool = False
    statuses: Mapping[str, int] = field(default_factory=dict)
    planned: bool = False
    note: str = ""
    remark: str = ""
    test: TestResult | None = None
    plain: TestResult | None = None
    marks: Mapping[str, TestResult] = field(default_factory=dict)

    @property
    def diverged(self) -> tuple[int, int]:
        """Our diverged runs, and all that ended."""
        return self.n_diverged, self.n_diverged + self.statuses.get("ok", 0)

    @property
    def reference_diverged(self) -> tuple[int, int]:
        """The reference's diverged runs, and all of them; a printed score has none."""
        then = self.then
        return (then.diverged, then.diverged + then.n) if then else (0, 1)


_NAMES = [item.name for item in fields(Verdict)]
COLUMNS = _NAMES[: _NAMES.index("line") + 1]


def table_of(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Return verdicts as the table of ``verdicts.csv``."""
    rows = [[getattr(each, name) for name in COLUMNS] for each in verdicts]
    return pd.DataFrame(rows, columns=COLUMNS)


Words = tuple[str, str, str]  # word, reason and direction


def in_words(each: Verdict) -> Verdict:
    """Return a verdict that has been tested with its word, direction and reason.

    A verdict before all runs of this look have ended says that it is interim. The marks of a test
    are kept where the verdict follows from it.
    """
    untested = _without_test(each)
    if untested:
        each = replace(each, marks={}, seeds_to_decide=np.nan)
    word, reason, direction = untested or _by_test(each)
    ended, runs = each.diverged[1], sum(each.statuses.values())
    interim = word != NOT_RUN and 0 < ended < runs
    changes = [name for name, mark in each.marks.items() if mark.verdict != word]
    return replace(
        each,
        verdict=word,
        direction=direction,
        reason=f"interim, {ended} of {runs} seeds so far: {reason}" if interim else reason,
        interim=interim,
        stands=not changes if each.marks else None,
        changes_under=" ".join(changes),
    )


def _without_test(each: Verdict) -> Words | None:
    if each.note:
        return NOT_RUN, each.note, ""
    if by_divergence := _by_divergence(each):
        return by_divergence
    if not each.ours_n:
        diverged, ended = each.diverged
        if diverged and diverged == ended:
            return INCONCLUSIVE, f"{_share(each.diverged)} diverged: too few to tell", ""
        if each.statuses.get("ok"):
            return NOT_RUN, f"the runs have no {each.metric} on split {each.split}", ""
        counts = ", ".join(f"{count} {status}" for status, count in sorted(each.statuses.items()))
        return NOT_RUN, f"no finished run ({counts})", ""
    if np.isnan(each.margin):
        why = "the margins name none for this metric"
    elif each.test is not None:
        return None
    elif each.ours_n == 1:
        why = "one run, and no spread on either side to judge it by: run at least 2 seeds"
    else:
        why = (
            "all runs are equal, and so are those of all sister cells: no spread to judge by. Only "
            "runs with the same seeds and the same bits are equal without a test"
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
    assert test is not None
    interval = f"[{test.low:.2f}, {test.high:.2f}]"
    tests = "1 test" if each.family_size == 1 else f"{each.family_size} tests"
    corrected = f"Holm p = {each.p_holm:.2g} of {tests}"
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
        if np.isfinite(each.seeds_to_decide):
            decides = f"{each.seeds_to_decide:.0f} seeds would decide if difference and spread stay"
        elif not each.paired and not each.reference_n >= 2 and abs(test.difference) < margin:
            decides = "no number of our seeds would decide: the reference is one uncertain value"
        words = f"{interval} {lies}; {decides}"
    pairs = len(each.paired)
    kind = f"identical under {pairs} common seeds" if each.identical else f"paired by {pairs} seeds"
    return str(test.verdict), "; ".join([words, *[kind] * bool(pairs), *_remarks(each)]), direction


def _remarks(each: Verdict) -> list[str]:
    remarks = [each.remark] if each.remark else []
    if each.n_diverged:
        remarks.append(f"{_share(each.diverged)} diverged and are left out")
    if each.reference_diverged[0]:
        then = _share(each.reference_diverged)
        remarks.append(f"of the frozen runs {then} diverged and are left out")
    without = each.statuses.get("ok", 0) - each.ours_n
    if without > 0:
        remarks.append(f"{without} of the finished runs without a finite score are left out")
    return remarks


def _share(diverged: tuple[int, int]) -> str:
    gone, runs = diverged
    if gone == runs:
        return "the only run" if runs == 1 else f"all {runs} runs"
    return f"{gone} of {runs} runs"


def rule(level: float = ALPHA) -> str:
    """Return the rule of all verdicts that are tested at ``level``."""
    looks = f"; several looks are planned, which together are wrong in at most {ALPHA:.0%}"
    return (
        f"reproduced: {100 * (1 - 2 * level):g}% interval of ours - reference inside the margin; "
        f"drifted: beyond the margin by a one-sided test at {100 * level:g}% after Holm over the "
        f"table; else inconclusive{looks if level < ALPHA else ''}"
    )


def drifted_messages(verdicts: pd.DataFrame) -> list[str]:
    """Return one message per drifted number: cell, both values, difference and why."""
    return [_message(row) for row in verdicts[verdicts["verdict"] == DRIFTED].to_dict("records")]


def _message(row: dict[Any, Any]) -> str:
    def score(mean: float, sd: float, n: float) -> str:
        spread = f"sd {sd:.2f}, " if pd.notna(sd) else ""
        return f"{mean:.2f} ({spread}n {n:.0f})" if pd.notna(mean) else f"no score (n {n:.0f})"

    cell = f"{row['dataset']}/{row['setting']}/{row['loss']}/bs{row['batch_size']:.0f}"
    source = row["source"] if row["source"] == row["table"] else f"{row['source']} {row['table']}"
    stated = pd.notna(row["reference_n"])
    theirs = score(row["reference_mean"], row["reference_sd"], row["reference_n"] if stated else 1)
    parts = [
        f"{cell} {row['split']} {row['metric']}",
        f"ours {score(row['ours_mean'], row['ours_sd'], row['ours_n'])}",
        f"{source} {theirs}{'' if stated else ', stated as one value'}",
        f"difference {row['difference']:+.2f}" if pd.notna(row["difference"]) else "",
        f"{row['verdict']} {row['direction']}".strip() + f": {row['reason']}",
    ]
    return "  ".join(filter(None, parts))


def summary_text(verdicts: pd.DataFrame) -> str:
    """Return the counts per table, every drifted number and the rule, as text for a terminal."""
    if verdicts.empty:
        return "no references: name published tables or frozen runs in the study's 'references'"
    lines = [f"{len(verdicts)} reference numbers"]
    lines += [
        f"  {(verdicts['verdict'] == word).sum():4d} {word}: {meaning}"
        for word, meaning in VERDICTS.items()
    ]
    counts = pd.crosstab([verdicts["source"], verdicts["table"]], verdicts["verdict"])
    lines += ["", counts.reindex(columns=list(VERDICTS), fill_value=0).to_string()]
    lines += ["", f"rule: {rule(verdicts['level'].min())}"]
    if interim := int(verdicts["interim"].sum()):
        lines.append(f"interim: {interim} of them, whose runs have not all ended: nothing is final")
    drifted = [f"drifted: {line}" for line in drifted_messages(verdicts)]
    return "\n".join([*lines, *([""] if drifted else []), *drifted])


def find_verdicts(verdicts: Sequence[Verdict], words: str) -> list[Verdict]:
    """Return the verdicts that every word of ``words`` fits; raise ConfigError with near names.

    Words are separated by "/": those of a table (roadmap2021v2/table1/SmoothAP) and those of a run
    (glyphs_1k/sup_ap/bs32/map_at_r), in any order and number. A word fits a field that equals it,
    letter case and signs apart; with "*" it is a pattern. Where no field equals a word, it may be a
    part of one.
    """
    if not verdicts:
        why = "there are no verdicts: the study names no references, or nothing of it has been run"
        advice = "'python -m benchmark check STUDY' says which"
        raise ConfigError(f"cell {words}", [f"{why}; {advice}"])
    names = [
        {plain(word) for word in (*_fields(each), each.row_label, each.backbone) if word}
        | {plain(display_name(each.metric))}
        for each in verdicts
    ]
    vocabulary: set[str] = set().union(*names)
    problems, chosen = [], list(range(len(verdicts)))
    for word in filter(None, map(plain, words.split("/"))):
        fitting = set(fnmatch.filter(vocabulary, word)) if "*" in word else {word} & vocabulary
        if not fitting and "*" not in word:
            fitting = {name for name in vocabulary if word in name}
        if not fitting:
            near = difflib.get_close_matches(word, vocabulary, n=4, cutoff=0.5)
            hint = f"; near: {', '.join(near)}" if near else ""
            problems.append(f"'{word}' is in no verdict{hint}")
        chosen = [index for index in chosen if names[index] & fitting]
    if not chosen and not problems:
        problems.append(
            f"no verdict has all words of '{words}', though each is in some verdict; leave one out"
        )
    if problems:
        raise ConfigError(f"cell {words}", problems)
    return [verdicts[index] for index in chosen]


def key_of(verdict: Verdict) -> str:
    """Return the words that find this verdict alone, as far as any words can."""
    return "/".join(plain(word) for word in dict.fromkeys(_fields(verdict)) if word)


def plain(word: str) -> str:
    """Return a word as it is compared: small letters; other signs than "*~.+@-" as "_"."""
    return re.sub(r"[^\w*~.@+-]+", "_", word.strip().lower()).strip("_")


def _fields(each: Verdict) -> list[str]:
    """Return the words of a verdict: where it is printed, and the runs behind it."""
    label = "" if each.source == FROZEN else each.row_label
    words = [each.source, each.table, label, *_facts(each, "bs{}"), each.split, each.metric]
    return [word or "" for word in words]


def _facts(each: Verdict, size: str) -> list[str]:
    batch = "" if each.batch_size is None else size.format(each.batch_size)
    return [each.dataset, each.setting or each.backbone, each.loss, batch]


def explain(verdict: Verdict, verdicts: Sequence[Verdict], table: RunTable) -> str:
    """Return how ``verdict``, one of ``verdicts`` on the runs in ``table``, came about."""
    family, runs = (verdict.source, verdict.table), table.runs
    rank = 1 + sum(
        other.p_drift < verdict.p_drift
        for other in verdicts
        if (other.source, other.table) == family
    )
    if verdict.cell is not None:
        ids = [verdict.cell.run_id(seed) for seed in set(runs["seed"])]
        runs = runs[runs["run_id"].isin(ids)]
    way = STANDARD_ERRORS[int(verdict.test.case)] if verdict.test else None
    square = way.square if way else ""
    variances = [  # letter, meaning and spread
        ("v", "one run of ours", verdict.spread),
        ("r", "one run of the reference", verdict.reference_spread),
        ("w", "one difference by seed", verdict.paired_spread),
    ]
    environment = Environment(
        loader=PackageLoader("benchmark.papers", ""),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("explain.txt.j2").render(
        each=verdict,
        epoch=EPOCHS[verdict.selection],
        place=" ".join(dict.fromkeys(family)),
        metric=display_name(verdict.metric),
        facts=list(filter(None, _facts(verdict, "batch size {}"))),
        runs=() if verdict.note else list(runs.sort_values("seed").itertuples()),
        way=way,
        spreads=[each for each in variances if f"{each[0]} " in square],
        rounding=verdict.rounding if math.isfinite(verdict.rounding) else 0.0,
        assumptions=MARKS,
        asked=applies(verdict.reference_n, verdict.then is None),
        inside=verdict.p_equivalence <= verdict.level,
        rank=rank,
        level=f"{100 * verdict.level:g}%",
        confidence=f"{100 * (1 - 2 * verdict.level):g}%",
        meaning=VERDICTS[verdict.verdict],
        known=math.isfinite,
        f3=lambda value: f"{value:.3f}",
    )
