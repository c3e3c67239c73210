"""From tests to words: the verdict on a number, with its reason."""

from __future__ import annotations

import numpy as np

from benchmark.papers.verdicts.records import Comparison, Outcome
from benchmark.papers.verdicts.vocabulary import (
    DRIFTED,
    HIGH,
    INCONCLUSIVE,
    LOW,
    NOT_RUN,
    REPRODUCED,
)
from benchmark.stats.rule import ALPHA, TestResult, seeds_to_decide


def outcome(each: Comparison, test: TestResult | None, p_holm: float, family: int) -> Outcome:
    """Return the verdict on ``each``; ``family`` tests were corrected together."""
    if each.note:
        return Outcome(NOT_RUN, each.note)
    if not each.ours.n:
        return _without_score(each)
    remarks = _remarks(each, test)
    if np.isnan(each.margin):
        return Outcome(INCONCLUSIVE, _joined("the margins name none for this metric", remarks))
    if test is None:
        why = "one run, and no spread on either side to judge it by: run at least 2 seeds"
        return Outcome(INCONCLUSIVE, _joined(why, remarks))
    interval = f"[{test.low:.2f}, {test.high:.2f}]"
    if test.p_equivalence <= ALPHA:
        words = f"{interval} lies inside ±{each.margin:g} points"
        return Outcome(REPRODUCED, _joined(words, remarks))
    if p_holm <= ALPHA:
        direction = HIGH if test.difference > 0 else LOW
        words = f"beyond ±{each.margin:g} points, Holm p = {p_holm:.2g} of {family} tests"
        return Outcome(DRIFTED, _joined(words, remarks), direction)
    seeds = _seeds(each, float(test.difference), family)
    more = "no number of seeds would decide: the reference side alone is too uncertain"
    if np.isfinite(seeds):
        more = f"{seeds:.0f} seeds would decide if difference and spread stay"
    words = f"{interval} crosses ±{each.margin:g} points; {more}"
    return Outcome(INCONCLUSIVE, _joined(words, remarks), seeds=seeds)


def _without_score(each: Comparison) -> Outcome:
    tried, diverged = sum(each.statuses.values()), each.statuses.get("diverged", 0)
    if diverged and diverged == tried:
        if diverged > 1:
            words = f"all {diverged} runs diverged; the reference has a score"
            return Outcome(DRIFTED, words, LOW)
        return Outcome(INCONCLUSIVE, "the only run diverged")
    if each.statuses.get("ok"):
        return Outcome(NOT_RUN, f"the runs have no {each.metric} on split {each.split}")
    counts = ", ".join(f"{count} {status}" for status, count in sorted(each.statuses.items()))
    return Outcome(NOT_RUN, f"no finished run ({counts})")


def _remarks(each: Comparison, test: TestResult | None) -> list[str]:
    tried, diverged = sum(each.statuses.values()), each.statuses.get("diverged", 0)
    remarks = [each.remark] if each.remark else []
    if diverged:
        remarks.append(f"{diverged} of {tried} runs diverged and are left out")
    if test is not None and test.se == 0:
        exact = "every seed differs by the same" if each.is_paired else "no spread between the runs"
        identical = each.is_paired and test.difference == 0
        exact = "identical at every seed" if identical else exact
        remarks.append(f"{exact}: judged as an exact value")
    elif test is not None and each.is_paired:
        remarks.append(f"paired by {each.paired.n:.0f} seeds")
    return remarks


def _joined(words: str, remarks: list[str]) -> str:
    return "; ".join([words, *remarks])


def _seeds(each: Comparison, difference: float, family: int) -> float:
    spreads = (each.paired.sd, each.ours.sd, each.reference.sd, each.pooled.sd)
    spread = next((sd for sd in spreads if np.isfinite(sd) and sd > 0), float("nan"))
    return seeds_to_decide(
        difference,
        spread,
        each.reference.sd,
        each.reference.n,
        now=each.ours.n,
        margin=each.margin,
        slack=float(np.nan_to_num(each.reference.rounding)),
        family=family,
        paired=each.is_paired,
    )
