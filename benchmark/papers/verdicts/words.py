"""From tests to words: the verdict on a number with its reason, and the table of all verdicts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from benchmark.papers.verdicts.records import Verdict
from benchmark.papers.verdicts.vocabulary import (
    DRIFTED,
    HIGH,
    INCONCLUSIVE,
    LOW,
    NOT_RUN,
    REPRODUCED,
    VERDICTS,
)
from benchmark.stats.divergence import diverges, p_more_divergence
from benchmark.stats.reproduction import ALPHA


def in_words(each: Verdict) -> Verdict:
    """Return a verdict that has been tested with its word, direction and reason.

    A verdict before all runs of this look have ended says that it is interim. The marks of a test
    are kept where the verdict follows from it.
    """
    untested = _without_test(each)
    if untested:
        each = replace(each, marks={}, seeds_to_decide=np.nan)
    word, reason, *direction = untested or _by_test(each)
    ended, runs = each.diverged[1], sum(each.statuses.values())
    interim = word != NOT_RUN and 0 < ended < runs
    changes = [name for name, mark in each.marks.items() if mark.verdict != word]
    return replace(
        each,
        verdict=word,
        direction="".join(direction),
        reason=f"interim, {ended} of {runs} seeds so far: {reason}" if interim else reason,
        interim=interim,
        stands=not changes if each.marks else None,
        changes_under=" ".join(changes),
    )


Words = tuple[str, str] | tuple[str, str, str]  # word, reason and direction


def _without_test(each: Verdict) -> Words | None:
    """Return what is said without the tests of the scores, or None."""
    if each.note:
        return NOT_RUN, each.note
    if by_divergence := _by_divergence(each):
        return by_divergence
    if not each.ours_n:
        return _without_score(each)
    why = ""
    if np.isnan(each.margin):
        why = "the margins name none for this metric"
    elif each.test is None and each.ours_n == 1:
        why = "one run, and no spread on either side to judge it by: run at least 2 seeds"
    elif each.test is None:
        why = (
            "all runs are equal, and so are those of all sister cells: no spread to judge by. Only "
            "runs with the same seeds and the same bits are equal without a test"
        )
    return (INCONCLUSIVE, "; ".join([why, *_remarks(each)])) if why else None


def _by_divergence(each: Verdict) -> Words | None:
    """Return the verdict where one side diverges and the other does not, or both always do."""
    now, then = each.diverged, each.reference_diverged
    ours, theirs = diverges(*now, each.level), diverges(*then, each.level)
    runs = f"{_share(now)} of ours diverged"
    if each.then is not None:
        runs += f", {_share(then)} of the frozen ones"
    if ours and theirs:
        always = now[0] == now[1] and then[0] == then[1]
        return (REPRODUCED, f"{runs}: no score on either side") if always else None
    if ours:
        return DRIFTED, runs, LOW
    if theirs and now[1]:
        if p_more_divergence(then, now) <= each.level:
            return DRIFTED, runs, HIGH
        if not each.then or not each.then.n:
            return INCONCLUSIVE, runs
    return None


def _without_score(each: Verdict) -> Words:
    diverged, ended = each.diverged
    if diverged and diverged == ended:
        return INCONCLUSIVE, f"{_share(each.diverged)} diverged: too few to tell"
    if each.statuses.get("ok"):
        return NOT_RUN, f"the runs have no {each.metric} on split {each.split}"
    counts = ", ".join(f"{count} {status}" for status, count in sorted(each.statuses.items()))
    return NOT_RUN, f"no finished run ({counts})"


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
    return (
        f"reproduced: {100 * (1 - 2 * level):g}% interval of ours - reference inside the margin; "
        f"drifted: beyond the margin by a one-sided test at {100 * level:g}% after Holm over the "
        "table; else inconclusive"
        + (
            f"; several looks are planned, which together are wrong in at most {ALPHA:.0%}"
            if level < ALPHA
            else ""
        )
    )


def counts(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return the number of references by source, table (rows) and verdict (columns)."""
    table = pd.crosstab([verdicts["source"], verdicts["table"]], verdicts["verdict"])
    return table.reindex(columns=list(VERDICTS), fill_value=0)


def drifted_messages(verdicts: pd.DataFrame) -> list[str]:
    """Return one message per drifted number: cell, both values, difference and why."""
    return [message(row) for row in verdicts[verdicts["verdict"] == DRIFTED].to_dict("records")]


def message(row: dict[Any, Any]) -> str:
    """Return a verdict in one line: cell, ours, reference, difference, verdict and reason."""
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


def score(mean: float, sd: float, n: float) -> str:
    """Return "85.20 (sd 0.31, n 5)" in percentage points."""
    spread = f"sd {sd:.2f}, " if pd.notna(sd) else ""
    return f"{mean:.2f} ({spread}n {n:.0f})" if pd.notna(mean) else f"no score (n {n:.0f})"


def summary_text(verdicts: pd.DataFrame) -> str:
    """Return the counts per table, every drifted number and the rule, as text for a terminal."""
    if verdicts.empty:
        return "no references: name published tables or frozen runs in the study's 'references'"
    lines = [f"{len(verdicts)} reference numbers"]
    lines += [
        f"  {(verdicts['verdict'] == word).sum():4d} {word}: {meaning}"
        for word, meaning in VERDICTS.items()
    ]
    lines += ["", counts(verdicts).to_string()]
    lines += ["", f"rule: {rule(verdicts['level'].min())}"]
    if interim := int(verdicts["interim"].sum()):
        lines.append(f"interim: {interim} of them, whose runs have not all ended: nothing is final")
    drifted = [f"drifted: {line}" for line in drifted_messages(verdicts)]
    return "\n".join([*lines, *([""] if drifted else []), *drifted])
