"""From tests to words: the verdict on a number with its reason, and the table of all verdicts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from benchmark.papers.verdicts.records import Comparison, Outcome
from benchmark.papers.verdicts.vocabulary import (
    DRIFTED,
    HIGH,
    INCONCLUSIVE,
    LOW,
    NOT_ASKED,
    NOT_RUN,
    REPRODUCED,
    VERDICTS,
)
from benchmark.stats.divergence import diverges, p_more_divergence
from benchmark.stats.reproduction import ALPHA, TestResult


def outcome(
    each: Comparison,
    test: TestResult | None,
    p_holm: float,
    family: int,
    seeds: int | None,
    level: float = ALPHA,
) -> Outcome:
    """Return the verdict on ``each``; ``family`` tests were corrected together.

    ``seeds`` of ours would decide it, if difference and spread stay as they are. A verdict before
    all runs of this look have ended says that it is interim.
    """
    said = _outcome(each, test, p_holm, family, seeds, level)
    if said.verdict == NOT_RUN or not each.interim:
        return said
    words = f"interim, {each.diverged[1]} of {sum(each.statuses.values())} seeds so far"
    return replace(said, reason=f"{words}: {said.reason}")


def _outcome(
    each: Comparison,
    test: TestResult | None,
    p_holm: float,
    family: int,
    seeds: int | None,
    level: float,
) -> Outcome:
    if each.note:
        return Outcome(NOT_RUN, each.note)
    by_divergence = _divergence(each, level)
    if by_divergence is not None:
        return by_divergence
    if not each.ours.n:
        return _without_score(each)
    remarks = _remarks(each)
    if np.isnan(each.margin):
        return Outcome(INCONCLUSIVE, _joined("the margins name none for this metric", remarks))
    if test is None:
        return Outcome(INCONCLUSIVE, _joined(_untested(each), remarks))
    if each.paired.identical:
        remarks.insert(0, f"identical under {each.paired.n} common seeds")
    elif each.is_paired:
        remarks.insert(0, f"paired by {each.paired.n} seeds")
    interval = f"[{test.low:.2f}, {test.high:.2f}]"
    if test.p_equivalence <= level:
        words = f"{interval} lies inside ±{each.margin:g} points"
        return Outcome(REPRODUCED, _joined(words, remarks), tested=True)
    corrected = f"Holm p = {p_holm:.2g} of {_tests(family)}"
    if p_holm <= level:
        direction = HIGH if test.difference > 0 else LOW
        words = f"beyond ±{each.margin:g} points, {corrected}"
        return Outcome(DRIFTED, _joined(words, remarks), direction, tested=True)
    words = f"{interval} {_position(each, test, corrected)}; {_what_decides(each, test, seeds)}"
    count = math.nan if seeds is None else float(seeds)
    return Outcome(INCONCLUSIVE, _joined(words, remarks), seeds=count, tested=True)


def _divergence(each: Comparison, level: float) -> Outcome | None:
    """Return the verdict where one side diverges and the other does not, or both always do."""
    now, then = each.diverged, each.reference_diverged
    ours, theirs = diverges(*now, level), diverges(*then, level)
    runs = f"{_share(now)} of ours diverged"
    if each.reference.sample is not None:
        runs += f", {_share(then)} of the frozen ones"
    if ours and theirs:
        always = now[0] == now[1] and then[0] == then[1]
        return Outcome(REPRODUCED, f"{runs}: no score on either side") if always else None
    if ours:
        return Outcome(DRIFTED, runs, LOW)
    if theirs and now[1]:
        if p_more_divergence(then, now) <= level:
            return Outcome(DRIFTED, runs, HIGH)
        if not each.reference.sample or not each.reference.sample.n:
            return Outcome(INCONCLUSIVE, runs)
    return None


def _without_score(each: Comparison) -> Outcome:
    diverged, ended = each.diverged
    if diverged and diverged == ended:
        return Outcome(INCONCLUSIVE, f"{_share(each.diverged)} diverged: too few to tell")
    if each.statuses.get("ok"):
        return Outcome(NOT_RUN, f"the runs have no {each.metric} on split {each.split}")
    counts = ", ".join(f"{count} {status}" for status, count in sorted(each.statuses.items()))
    return Outcome(NOT_RUN, f"no finished run ({counts})")


def _untested(each: Comparison) -> str:
    """Return why there is no test."""
    if each.ours.n == 1:
        return "one run, and no spread on either side to judge it by: run at least 2 seeds"
    return (
        "all runs are equal, and so are those of all sister cells: no spread to judge by. Only "
        "runs with the same seeds and the same bits are equal without a test"
    )


def _position(each: Comparison, test: TestResult, corrected: str) -> str:
    margin = each.margin
    if test.low > margin or test.high < -margin:
        return f"lies beyond ±{margin:g} points, but {corrected}"
    if test.low < -margin and test.high > margin:
        return f"contains ±{margin:g} points and more"
    return f"crosses the edge of ±{margin:g} points"


def _what_decides(each: Comparison, test: TestResult, seeds: int | None) -> str:
    if seeds is not None:
        return f"{seeds} seeds would decide if difference and spread stay"
    if not each.is_paired and not each.reference.n >= 2 and abs(test.difference) < each.margin:
        return "no number of our seeds would decide: the reference is one uncertain value"
    return "no number of our seeds would decide if difference and spread stay"


def _remarks(each: Comparison) -> list[str]:
    remarks = [each.remark] if each.remark else []
    diverged, ended = each.diverged
    if diverged:
        remarks.append(f"{_share((diverged, ended))} diverged and are left out")
    then, all_then = each.reference_diverged
    if then:
        remarks.append(f"of the frozen runs {_share((then, all_then))} diverged and are left out")
    without = each.statuses.get("ok", 0) - each.ours.n
    if without > 0:
        remarks.append(f"{without} of the finished runs without a finite score are left out")
    return remarks


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


def _share(diverged: tuple[int, int]) -> str:
    gone, runs = diverged
    if gone == runs:
        return "the only run" if runs == 1 else f"all {runs} runs"
    return f"{gone} of {runs} runs"


def _tests(family: int) -> str:
    return "1 test" if family == 1 else f"{family} tests"


def _joined(words: str, remarks: list[str]) -> str:
    return "; ".join([words, *remarks])


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
    if verdicts["verdict"].ne(NOT_ASKED).any():
        lines += ["", f"rule: {rule(verdicts['level'].min())}"]
    if interim := int(verdicts["interim"].sum()):
        lines.append(f"interim: {interim} of them, whose runs have not all ended: nothing is final")
    drifted = [f"drifted: {line}" for line in drifted_messages(verdicts)]
    return "\n".join([*lines, *([""] if drifted else []), *drifted])
