"""One reported number against one published number, from the figures alone, without any run."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
from scipy import optimize

from benchmark.core.errors import ConfigError
from benchmark.metrics.metric import check_metric, metric_named
from benchmark.stats.planning import Design, seeds_to_decide, smallest_drift
from benchmark.stats.reproduction import (
    ALPHA,
    DRIFTED,
    LABORATORY,
    MARKS,
    REPRODUCED,
    SPREAD,
    STANDING,
    UNDECIDED,
    UNTESTED,
    Evidence,
    TestResult,
    applies,
    compare,
    marks,
    tipping_points,
)

# Few digits are allowed: 0e999 is zero, and half of its last digit is more than any number.
NUMBER = re.compile(r"(?a)[+-]?(\d{1,20}\.?\d{0,20}|\.\d{1,20})([eE][+-]?\d{1,2})?")
PLANNED = (3, 5, 10)  # runs whose power is shown
WIDEST = 1000.0  # points: no spread is larger
REFERENCE_RUNS = (2, 3, 5, 10, 20)
GIVEN = "given"
OWN = "own runs"
PUBLISHED = "published spread"
NONE = "none"
_ADVICE = {  # by what stands in a number
    "±": "write the number alone; its spread has an option of its own",
    "+-": "write the number alone; its spread has an option of its own",
    ",": "the decimal sign is a point, and several runs are several --ours",
    "%": "leave out the sign %",
}


@dataclass(frozen=True)
class JudgedCase:
    """Scores and spreads in percentage points.

    ours              the score of each run, or the mean of ``n`` runs
    spread            standard deviation of one run, taken as known; None: computed from the scores
    published_spread  standard deviation that is printed beside ``published``
    published_n       runs behind ``published``; None: not stated, counts as one run
    rounding          half a unit of the last printed digit
    family            numbers that are judged together, this number included
    name              of a row of a table
    metric            its name in results: ``recall_at_1``
    """

    ours: tuple[float, ...]
    n: int
    published: float
    margin: float
    spread: float | None = None
    published_spread: float | None = None
    published_n: int | None = None
    rounding: float = 0.0
    family: int = 1
    name: str = ""
    metric: str = ""


def question(
    *,
    ours: Sequence[str],
    default_margin: Callable[[str, float], float],
    published: str | None = None,
    metric: str = "recall_at_1",
    margin: str | None = None,
    n: str | None = None,
    spread: str | None = None,
    published_spread: str | None = None,
    published_n: str | None = None,
    family: str = "1",
    unexpected: Sequence[str] = (),
    name: str = "",
) -> JudgedCase:
    """Return the case that the texts of the options describe; raise ConfigError with all problems.

    ``default_margin`` returns the margin of a metric for a published score. ``unexpected`` has the
    arguments that belong to no option.
    """
    problems = [
        f"'{text}' belongs to no option: write '--ours {text}' if it is a run"
        for text in unexpected
    ]
    if not ours:
        problems.append("--ours is missing: the score that you got, such as --ours 62.4")
    if published is None:
        problems.append("--published is missing: the score in the paper, such as --published 65.9")

    def read(option: str, text: str | None, parse: Callable[[str], float]) -> Any:
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError as error:
            problems.append(f"{option}: {error}")
            return None

    scores = [read("--ours", text, read_score) for text in ours]
    reference = read("--published", published, read_score)
    runs = read("--n", n, _count)
    if runs and len(ours) > 1 and runs != len(ours):
        problems.append(
            f"--n: {runs} runs, but {len(ours)} values of --ours; give each run its value, or "
            "their mean and --n"
        )
    width = read("--margin", margin, read_points)
    metric = metric_named(metric)
    if margin is None:
        problem = check_metric(metric)
        if problem:
            problems.append(f"--metric: {problem}")
        width = default_margin(metric, math.nan if reference is None else reference)
    others = {
        "spread": read("--spread", spread, read_points),
        "published_spread": read("--published-spread", published_spread, read_points),
        "published_n": read("--published-n", published_n, _count),
        "family": read("--family", family, _count),
    }
    if problems:
        raise ConfigError("judge", problems)
    return JudgedCase(
        ours=tuple(scores),
        n=runs or len(ours),
        published=reference,
        margin=width,
        rounding=half_of_last_digit(str(published)),
        name=name,
        metric=metric,
        **others,
    )


def read_score(text: str) -> float:
    """Return a score in percent; raise ValueError for others and for what may be a share."""
    value = _number(text.strip().removesuffix("%").rstrip(), text, "62.4")
    if not 0 <= value <= 100:
        raise ValueError(f"{text} is not a score; scores are 0 to 100 percent")
    if 0 < value <= 1 and "%" not in text:
        message = f"{text} looks like a fraction; scores are in percent: write {100 * value:g}"
        raise ValueError(f"{message}, or {text}% if it is that low")
    return value


def read_points(text: str) -> float:
    """Return a difference in points; raise ValueError for anything else."""
    value = _number(text.strip(), text, "0.3")
    if not 0 < value <= 100:
        raise ValueError(f"{text} must be above 0 and at most 100 points")
    return value


def _number(digits: str, text: str, example: str) -> float:
    if NUMBER.fullmatch(digits):
        return float(digits)
    advice = f"write a number such as {example}"
    for sign in _ADVICE:
        if sign in text:
            advice = _ADVICE[sign]
            break
    raise ValueError(f"'{text}' is not a number; {advice}")


def _count(text: str) -> int:
    if re.fullmatch(r"(?a)\d{1,6}", text.strip()) and int(text) >= 1:
        return int(text)
    raise ValueError(f"'{text}' must be a whole number: 1, 2, 3, ...")


def half_of_last_digit(text: str) -> float:
    """Return half a unit of the last printed digit: 0.05 for 65.9, 0.5 for 66."""
    exponent = Decimal(text.replace("%", "").strip()).as_tuple().exponent
    return 0.5 * 10.0 ** int(exponent)


def _evidence(case: JudgedCase) -> tuple[Evidence, float, str]:
    """Return the evidence of a case, the spread of one run of ours, and the spread's origin."""
    stated = case.published_spread
    behind = case.published_n or 1
    published_df = behind - 1.0 if behind > 1 else np.inf
    spread = np.nan
    df = np.nan
    origin = NONE
    if case.spread is not None:
        spread = case.spread
        df = np.inf
        origin = GIVEN
    elif len(set(case.ours)) > 1:
        spread = float(np.std(case.ours, ddof=1))
        df = case.n - 1.0
        origin = OWN
    elif stated is not None:
        spread = stated
        df = published_df
        origin = PUBLISHED
    evidence = Evidence(
        ours=float(np.mean(case.ours)),
        ours_n=case.n,
        reference=case.published,
        variance=spread**2,
        df=df,
        reference_n=case.published_n or np.nan,
        reference_variance=np.nan if stated is None else stated**2,
        reference_df=published_df,
        margin=case.margin,
        slack=case.rounding,
    )
    return evidence, spread, origin


def in_noise(ours: float, published: float, spread: float, rounding: float) -> bool:
    """Return whether the 95 % interval of the difference of two runs with a known spread holds 0.

    It is +- 1.96 sqrt(2) ``spread``, widened by half of the last printed digit.
    """
    evidence = Evidence(ours, 1, published, spread**2, np.inf, slack=rounding)
    interval = compare(evidence, alpha=ALPHA / 2)
    return bool(interval.low <= 0 <= interval.high)


def judge(case: JudgedCase) -> dict[str, Any]:
    """Return the answer to ``case`` alone: see ``answers``."""
    return answers([case])[0]


def answers(cases: Sequence[JudgedCase]) -> list[dict[str, Any]]:
    """Return the answer to each case of one family as plain values for JSON; None: not known.

    stands                 whether the verdict is the same under the assumptions of ``STANDING``;
                           None for a verdict that is neither reproduced nor drifted
    tips                   tipping points: the largest spread between laboratories, and the largest
                           ratio of the published spread to the assumed one, without a change
    spread                 of one run of ours, and where the spread comes from; a given spread
                           counts as known, with infinitely many degrees of freedom
    test                   None without a spread
    sensitivity            the test under each assumption of ``MARKS``, and whether it applies
    largest_spread         of one run, on both sides, at which the difference would be called
                           reproduced and drifted; 0: at no spread, None: at any spread
    would_decide           ``runs`` of ours; or, if the reference were the mean of
                           ``reference_runs``, ``runs_with`` of ours; None for a decided number
    smallest_drift_called  by number of runs: the smallest drift that they call in 80 % of cases
    """
    fields = [[*vars(_evidence(case)[0]).values()] for case in cases]
    whole = Evidence(*np.array(fields, float).T)
    family = cases[0].family
    tests = compare(whole, planned=family)
    worlds = marks(whole, planned=family)
    tips = {name: tipping_points(whole, name, planned=family) for name in (LABORATORY, SPREAD)}
    results = []
    for at, case in enumerate(cases):
        of_worlds = {name: world.at(at) for name, world in worlds.items()}
        of_tips = {name: _known(points[at]) for name, points in tips.items()}
        results.append(_answer(case, tests.at(at), of_worlds, of_tips))
    return results


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _answer(
    case: JudgedCase,
    test: TestResult,
    worlds: Mapping[str, TestResult],
    tips: dict[str, float | None],
) -> dict[str, Any]:
    evidence, spread, origin = _evidence(case)
    behind = case.published_n or 1
    verdict = str(test.verdict)
    asks = applies(evidence.reference_n)
    tested = verdict != UNTESTED
    sensitivity = {}
    for name, mark in worlds.items() if tested else ():
        sensitivity[name] = {
            "assumption": MARKS[name],
            "applies": bool(asks[name]),
            "verdict": str(mark.verdict),
            "stands": bool(mark.verdict == verdict),
            "p_drift": _known(mark.p_drift),
            "p_equivalence": _known(mark.p_equivalence),
        }
    stands = None
    if verdict in (REPRODUCED, DRIFTED):
        stands = all(sensitivity[name]["stands"] for name in STANDING)
    design = Design(0, spread, case.family, reference_runs=behind, margin=case.margin)
    numbers = ("se", "df", "low", "high", "p_equivalence", "p_drift", "p_holm")
    return {
        "verdict": verdict,
        "stands": stands,
        "tips": tips,
        "difference": float(test.difference),
        "margin": case.margin,
        "family": case.family,
        "ours": {"values": list(case.ours), "mean": evidence.ours, "runs": case.n},
        "published": {
            "value": case.published,
            "runs": case.published_n,
            "spread": case.published_spread,
            "rounding": case.rounding,
        },
        "spread": {"of_one_run": _known(spread), "from": origin},
        "test": {name: _known(getattr(test, name)) for name in numbers} if tested else None,
        "sensitivity": sensitivity,
        "largest_spread": {
            word: _known(_largest_spread(evidence, case.family, word))
            for word in (REPRODUCED, DRIFTED)
        },
        "would_decide": (
            _deciding(evidence, behind, case.family) if verdict == UNDECIDED else None
        ),
        "smallest_drift_called": {
            str(runs): _known(smallest_drift(replace(design, seeds=runs)))
            for runs in (PLANNED if tested else ())
        },
    }


def _deciding(evidence: Evidence, published_n: int, family: int) -> dict[str, int | None]:
    deciding: dict[str, int | None] = dict.fromkeys(("runs", "reference_runs", "runs_with"))
    runs = seeds_to_decide(evidence, family=family)
    if np.isfinite(runs):
        return deciding | {"runs": int(runs)}
    for behind in REFERENCE_RUNS:
        runs = seeds_to_decide(replace(evidence, reference_n=behind), family=family)
        if behind > published_n and np.isfinite(runs):
            return deciding | {"reference_runs": behind, "runs_with": int(runs)}
    return deciding


def _largest_spread(evidence: Evidence, family: int, verdict: str) -> float:
    def excess(spread: float) -> float:
        of_both = replace(evidence, variance=spread**2, df=np.inf, reference_variance=np.nan)
        result = compare(of_both)
        if verdict == REPRODUCED:
            return float(result.p_equivalence) - ALPHA
        return float(result.p_drift) - ALPHA / family

    low = 1e-6
    if excess(low) > 0:
        return 0.0
    if not excess(WIDEST) > 0:
        return np.inf
    return float(optimize.brentq(excess, low, WIDEST))
