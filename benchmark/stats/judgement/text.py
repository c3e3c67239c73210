"""A judgement in words."""

import numpy as np

from benchmark.stats.judgement.judge import GIVEN, OWN, PUBLISHED, Decision, Judgement
from benchmark.stats.judgement.question import Question
from benchmark.stats.reproduction import ALPHA, DRIFTED, REPRODUCED, UNDECIDED, UNTESTED
from benchmark.stats.sensitivity import MARKS

_MEANING = {
    REPRODUCED: "the difference is smaller than the margin",
    DRIFTED: "the difference is larger than the margin",
    UNDECIDED: "the difference may be smaller or larger than the margin",
    UNTESTED: "nothing is known of the spread between runs: give --spread or several --ours",
}
_ORIGIN = {
    GIVEN: "as given, and taken as known",
    OWN: "from the runs given",
    PUBLISHED: "as published, also for ours",
}


def as_text(found: Judgement) -> str:
    """Return the whole answer."""
    lines = [_headline(found), "", *_numbers(found)]
    if found.sensitivity:
        lines += ["", *_sensitivity(found)]
    lines += ["", *_what_would_decide(found)]
    return "\n".join(lines)


def _headline(found: Judgement) -> str:
    asked = found.question
    difference = asked.mean - asked.published
    verdict = found.verdict
    if verdict == DRIFTED:
        verdict += " high" if difference > 0 else " low"
    elif verdict == UNTESTED:
        verdict = "inconclusive"
    return f"{verdict}: {_MEANING[found.verdict]}"


def _numbers(found: Judgement) -> list[str]:
    asked, test = found.question, found.test
    ours = f"{asked.mean:.4g} ({_runs(asked.n)})"
    behind = "one run, as no number is stated"
    if asked.published_n:
        behind = _runs(asked.published_n)
    lines = [
        f"  ours          {ours}",
        f"  published     {asked.published:g} ({behind})",
        f"  difference    {asked.mean - asked.published:+.2f} points, margin {asked.margin:g}",
    ]
    if test is None:
        return lines
    interval = f"[{float(test.low):+.2f}, {float(test.high):+.2f}]"
    known = np.isinf(test.df)
    df = "normal" if known else f"t with {float(test.df):.3g} degrees of freedom"
    family = f"; the strictest level of {asked.family} tests is {ALPHA / asked.family:.2g}"
    return [
        *lines,
        f"  90% interval  {interval}, with half a unit of the last printed digit",
        f"  spread        {found.spread:.3g} points for one run, {_ORIGIN[found.origin]}"
        f"{_reference_spread(asked)}",
        f"  error         {float(test.se):.3g} points, {df}",
        f"  p             {float(test.p_equivalence):.2g} against 'reproduced', "
        f"{float(test.p_drift):.2g} against 'drifted'; level {ALPHA:g}"
        f"{family if asked.family > 1 else ''}",
    ]


def _reference_spread(asked: Question) -> str:
    if asked.published_spread is None:
        return ", on both sides"
    return f"; {asked.published_spread:g} as published on their side"


def _sensitivity(found: Judgement) -> list[str]:
    """Return a line for each assumption that was changed."""
    stands = "stands" if found.stands else "does not stand"
    lines = [f"Sensitivity: the verdict {stands} when an assumption fails"]
    for name, mark in found.sensitivity.items():
        if mark.applies[0]:
            state = "stands " if mark.stands[0] else "CHANGES"
            lines.append(f"  {state}  {MARKS[name]}: {mark.verdict[0]}")
        else:
            lines.append(f"  -        {MARKS[name]}: not asked of a mean of several runs")
    return lines


def _what_would_decide(found: Judgement) -> list[str]:
    lines = ["What would decide it"]
    if found.decision is not None:
        lines += _decision(found.decision)
    lines += [f"  {_limits(found)}"]
    if found.sees:
        calls = ", ".join(f"{_runs(n)} {drift:.2g}" for n, drift in found.sees.items())
        lines.append(f"  the smallest drift called in 80% of cases, in points, with {calls}")
    return lines


def _decision(decision: Decision) -> list[str]:
    if decision.runs is not None:
        return [f"  {_runs(decision.runs)} of ours, if difference and spread stay as they are"]
    if decision.reference_runs is None or decision.runs_with is None:
        return ["  no number of runs: the difference is too close to the margin"]
    return [
        "  no number of our runs alone: the published value is too uncertain",
        f"  a published mean of {decision.reference_runs} runs with {_runs(decision.runs_with)} of "
        "ours, if difference and spread stay as they are",
    ]


def _limits(found: Judgement) -> str:
    drifted, reproduced = found.limits[DRIFTED], found.limits[REPRODUCED]
    runs = f"{_runs(found.question.n)} of ours and known spread"
    if drifted > 0:
        return f"with {runs}: drifted up to a spread of {drifted:.2g} points, else inconclusive"
    if reproduced > 0:
        return (
            f"with {runs}: reproduced up to a spread of {reproduced:.2g} points, else inconclusive"
        )
    return f"with {runs}: no spread decides, the difference is the margin to within rounding"


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"
