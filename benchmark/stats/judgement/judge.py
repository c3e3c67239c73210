"""The verdict on a question, its sensitivity, and what would decide it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize

from benchmark.stats.judgement.question import Question
from benchmark.stats.planning import Design, seeds_to_decide, smallest_drift
from benchmark.stats.reproduction import (
    ALPHA,
    DRIFTED,
    REPRODUCED,
    UNTESTED,
    Evidence,
    TestResult,
    compare,
    element,
    words,
)
from benchmark.stats.sensitivity import MARKS, Mark, marks

PLANNED = (3, 5, 10)  # seeds whose power is told
WIDEST = 1000.0  # points: no spread is larger
REFERENCE_RUNS = (2, 3, 5, 10, 20)


@dataclass(frozen=True)
class Decision:
    """What would decide an inconclusive number; None: not with that.

    runs            of ours, with the reference as it is
    reference_runs  behind the reference, if it were the mean of as many, with ``runs_with`` of ours
    """

    runs: int | None
    reference_runs: int | None = None
    runs_with: int | None = None


@dataclass(frozen=True)
class Judgement:
    """The answer to a question.

    spread, origin  of one run of ours, and where it comes from
    test            None without any spread
    limits          the largest spread of one run, on both sides, at which the difference would be
                    called reproduced and drifted; 0: at none
    decision        None for a verdict that is decided
    sees            by number of runs: the smallest drift that they call in 80 % of cases
    """

    question: Question
    verdict: str
    spread: float
    origin: str
    test: TestResult | None
    sensitivity: Mapping[str, Mark]
    limits: Mapping[str, float]
    decision: Decision | None
    sees: Mapping[int, float]

    @property
    def stands(self) -> bool:
        """Whether the verdict is the same in every world of ``MARKS``."""
        return all(bool(mark.stands[0]) for mark in self.sensitivity.values())


GIVEN, OWN, PUBLISHED, NONE = "given", "own runs", "published spread", "none"


def judge(asked: Question) -> Judgement:
    """Return the answer to ``asked``."""
    spread, df, origin = _spread(asked)
    evidence = _evidence(asked, spread, df)
    result = compare(evidence)
    verdict = str(words(result, planned=asked.family)[0])
    tested = verdict != UNTESTED
    decided = verdict in (REPRODUCED, DRIFTED)
    return Judgement(
        question=asked,
        verdict=verdict,
        spread=spread,
        origin=origin,
        test=result.at(0) if tested else None,
        sensitivity=marks(evidence, planned=asked.family) if tested else {},
        limits=_limits(asked),
        decision=_decision(asked, evidence) if tested and not decided else None,
        sees=_power(asked, spread) if tested else {},
    )


def _spread(asked: Question) -> tuple[float, float, str]:
    """Return the spread of one run of ours, its degrees of freedom, and its origin.

    A spread that is given counts as known: infinitely many degrees of freedom.
    """
    if asked.spread is not None:
        return asked.spread, np.inf, GIVEN
    if len(set(asked.ours)) > 1:
        return float(np.std(asked.ours, ddof=1)), asked.n - 1.0, OWN
    if asked.published_spread is not None:
        return asked.published_spread, _published_df(asked), PUBLISHED
    return np.nan, np.nan, NONE


def _published_df(asked: Question) -> float:
    runs = asked.published_n or 1
    return runs - 1.0 if runs > 1 else np.inf


def _evidence(asked: Question, spread: float, df: float) -> Evidence:
    """Return the evidence as arrays of one element."""
    stated = asked.published_spread
    columns = dict(
        ours=asked.mean,
        ours_n=asked.n,
        reference=asked.published,
        variance=spread**2,
        df=df,
        reference_n=asked.published_n or np.nan,
        reference_variance=np.nan if stated is None else stated**2,
        reference_df=np.nan if stated is None else _published_df(asked),
        margin=asked.margin,
        slack=asked.rounding,
    )
    return Evidence(**{name: np.array([value], float) for name, value in columns.items()})


def _decision(asked: Question, evidence: Evidence) -> Decision:
    runs = _runs(evidence, asked.family)
    if runs is not None:
        return Decision(runs)
    for behind in REFERENCE_RUNS:
        if behind > (asked.published_n or 1):
            more = _runs(replace(evidence, reference_n=np.array([float(behind)])), asked.family)
            if more is not None:
                return Decision(None, behind, more)
    return Decision(None)


def _runs(evidence: Evidence, family: int) -> int | None:
    return seeds_to_decide(element(evidence, 0), family=family)


def _limits(asked: Question) -> dict[str, float]:
    """Return the spreads of ``Judgement.limits``; infinite where any spread will do."""

    def largest(verdict: str) -> float:
        def excess(spread: float) -> float:
            both = replace(asked, published_spread=None)
            result = compare(_evidence(both, spread, np.inf))
            if verdict == REPRODUCED:
                return float(result.p_equivalence[0]) - ALPHA
            return float(result.p_drift[0]) - ALPHA / asked.family

        low, high = 1e-6, WIDEST
        if excess(low) > 0:
            return 0.0
        return float(optimize.brentq(excess, low, high)) if excess(high) > 0 else np.inf

    return {verdict: largest(verdict) for verdict in (REPRODUCED, DRIFTED)}


def _power(asked: Question, spread: float) -> dict[int, float]:
    designs = {
        seeds: Design(
            seeds,
            spread,
            asked.family,
            reference_runs=asked.published_n or 1,
            margin=asked.margin,
        )
        for seeds in PLANNED
    }
    return {seeds: smallest_drift(design) for seeds, design in designs.items()}


def record(found: Judgement) -> dict[str, object]:
    """Return the judgement as plain values for JSON; None for what is not known."""
    test, asked = found.test, found.question
    return {
        "verdict": found.verdict,
        "stands": found.stands if test else None,
        "difference": asked.mean - asked.published,
        "margin": asked.margin,
        "family": asked.family,
        "ours": {"values": list(asked.ours), "mean": asked.mean, "runs": asked.n},
        "published": {
            "value": asked.published,
            "runs": asked.published_n,
            "spread": asked.published_spread,
            "rounding": asked.rounding,
        },
        "spread": {"of_one_run": _known(found.spread), "from": found.origin},
        "test": test
        and {
            name: _known(float(getattr(test, name)))
            for name in ("se", "df", "low", "high", "p_equivalence", "p_drift")
        },
        "sensitivity": {
            name: {
                "assumption": MARKS[name],
                "applies": bool(mark.applies[0]),
                "verdict": str(mark.verdict[0]),
                "stands": bool(mark.stands[0]),
                "p_drift": _known(float(mark.result.p_drift[0])),
                "p_equivalence": _known(float(mark.result.p_equivalence[0])),
            }
            for name, mark in found.sensitivity.items()
        },
        "largest_spread": {name: _known(value) for name, value in found.limits.items()},
        "would_decide": found.decision and vars(found.decision),
        "smallest_drift_called": {str(n): _known(drift) for n, drift in found.sees.items()},
    }


def _known(value: float) -> float | None:
    """Return a number, or None for NaN and infinity, which JSON does not have."""
    return float(value) if np.isfinite(value) else None
