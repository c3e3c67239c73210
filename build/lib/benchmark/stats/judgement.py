"""One reported number against one published number, from the figures alone, without any run."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

from benchmark.core.errors import ConfigError
from benchmark.metrics.metric import check_metric
from benchmark.stats.planning import Design, seeds_to_decide, smallest_drift
from benchmark.stats.reproduction import (
    ALPHA,
    DRIFTED,
    MARKS,
    REPRODUCED,
    UNDECIDED,
    UNTESTED,
    Evidence,
    TestResult,
    applies,
    compare,
    element,
    marks,
)

# few digits: 0e999 is zero, and half of its last digit is more than any number
NUMBER = re.compile(r"(?a)[+-]?(\d{1,20}\.?\d{0,20}|\.\d{1,20})([eE][+-]?\d{1,2})?")
PLANNED = (3, 5, 10)  # runs whose power is shown
WIDEST = 1000.0  # points: no spread is larger
REFERENCE_RUNS = (2, 3, 5, 10, 20)
GIVEN, OWN, PUBLISHED, NONE = "given", "own runs", "published spread", "none"
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
_ADVICE = {  # by what stands in a number
    "±": "write the number alone; its spread has an option of its own",
    "+-": "write the number alone; its spread has an option of its own",
    ",": "the decimal sign is a point, and several runs are several --ours",
    "%": "leave out the sign %; scores are in percent anyway",
}


@dataclass(frozen=True)
class Question:
    """Scores and spreads in percentage points.

    ours              the score of each run, or the mean of ``n`` runs
    spread            standard deviation of one run, taken as known; None: from the figures
    published_spread  standard deviation that is printed beside ``published``
    published_n       runs behind ``published``; None: not stated, counts as one
    rounding          half a unit of the last printed digit
    family            numbers that are judged together, this one included
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

    @property
    def mean(self) -> float:
        """The mean of ours."""
        return float(np.mean(self.ours))


def question(
    *,
    ours: Sequence[str],
    published: str | None,
    default_margin: Callable[[str, float], float | None],
    metric: str = "recall_at_1",
    margin: str | None = None,
    n: str | None = None,
    spread: str | None = None,
    published_spread: str | None = None,
    published_n: str | None = None,
    family: str = "1",
    unexpected: Sequence[str] = (),
) -> Question:
    """Return the question that the texts of the options ask; raise ConfigError with every problem.

    ``default_margin`` returns the margin of a metric for a published score. ``unexpected`` are
    words that belong to no option.
    """
    problems = [
        f"'{word}' belongs to no option: write '--ours {word}' if it is a run"
        for word in unexpected
    ]
    if not ours:
        problems.append("--ours is missing: the score that you got, such as --ours 62.4")
    if published is None:
        problems.append("--published is missing: the score in the paper, such as --published 65.9")

    def number(option: str, text: str, example: str) -> float:
        if NUMBER.fullmatch(text.strip()):
            return float(text)
        advice = (words for sign, words in _ADVICE.items() if sign in text)
        words = next(advice, f"write a number such as {example}")
        problems.append(f"{option}: '{text}' is not a number; {words}")
        return math.nan

    def score(option: str, text: str) -> float:
        value = number(option, text, "62.4")
        if value < 0 or value > 100:
            problems.append(f"{option}: {text} is not a score; scores are 0 to 100 percent")
        elif 0 < value <= 1:
            words = f"looks like a fraction; scores are in percent, such as {100 * value:g}"
            problems.append(f"{option}: {text} {words}")
        return value

    def points(option: str, text: str | None) -> float | None:
        value = None if text is None else number(option, text, "0.3")
        if value is not None and (value <= 0 or value > 100):
            problems.append(f"{option}: {text} must be above 0 and at most 100 points")
        return value

    def count(option: str, text: str | None) -> int | None:
        if text is None or (re.fullmatch(r"(?a)\d{1,6}", text.strip()) and int(text) >= 1):
            return None if text is None else int(text)
        problems.append(f"{option}: '{text}' must be a whole number: 1, 2, 3, ...")
        return 0

    scores = tuple(score("--ours", text) for text in ours)
    reference = math.nan if published is None else score("--published", published)
    runs = len(ours) if n is None else count("--n", n)
    if runs and len(ours) > 1 and runs != len(ours):
        problems.append(
            f"--n: {runs} runs, but {len(ours)} values of --ours; give each run its value, or "
            "their mean and --n"
        )
    width = points("--margin", margin)
    if margin is None:
        # the name may be written as tables show it
        name = re.sub(r"(?i)^(?:r|recall)@(?=\d)", "recall_at_", metric.strip())
        name = {"map@r": "map_at_r", "map": "map"}.get(name.lower(), name)
        problem = check_metric(name)
        width = None if problem else default_margin(name, reference)
        if width is None:
            problems.append(f"--metric: {problem or f'{name} has no margin; give --margin'}")
    asked = Question(
        ours=scores,
        n=runs or 0,
        published=reference,
        margin=math.nan if width is None else width,
        spread=points("--spread", spread),
        published_spread=points("--published-spread", published_spread),
        published_n=count("--published-n", published_n),
        family=count("--family", family) or 0,
    )
    if problems:
        raise ConfigError("judge", problems)
    return replace(asked, rounding=half_of_last_digit(str(published)))


def half_of_last_digit(text: str) -> float:
    """Return half a unit of the last printed digit: 0.05 for 65.9, 0.5 for 66."""
    exponent = Decimal(text.strip()).as_tuple().exponent
    return 0.5 * 10.0 ** int(exponent)


class Decision(NamedTuple):
    """What would decide an inconclusive number; None: not with that.

    runs            of ours, with the reference as it is
    reference_runs  behind the reference, if it were the mean of as many, with ``runs_with`` of ours
    """

    runs: int | None = None
    reference_runs: int | None = None
    runs_with: int | None = None


@dataclass(frozen=True)
class Judgement:
    """The answer to a question.

    spread, origin  of one run of ours, and where it comes from
    test            None without any spread
    marks           the test in each world of ``MARKS``; ``asked``: whether it makes sense here
    limits          the largest spread of one run, on both sides, at which the difference would be
                    called reproduced and drifted; 0: at none, infinite: at any
    decision        None for a verdict that is decided
    sees            by number of runs: the smallest drift that they call in 80 % of cases
    """

    question: Question
    verdict: str
    spread: float
    origin: str
    test: TestResult | None
    marks: Mapping[str, TestResult]
    asked: Mapping[str, bool]
    limits: Mapping[str, float]
    decision: Decision | None
    sees: Mapping[int, float]

    @property
    def stands(self) -> bool:
        """Whether the verdict is the same in every world of ``MARKS``."""
        return all(mark.verdict == self.verdict for mark in self.marks.values())


def judge(asked: Question) -> Judgement:
    """Return the answer to ``asked``.

    A spread that is given counts as known: infinitely many degrees of freedom.
    """
    stated, behind = asked.published_spread, asked.published_n or 1
    published_df = behind - 1.0 if behind > 1 else np.inf
    spread, df, origin = np.nan, np.nan, NONE
    if asked.spread is not None:
        spread, df, origin = asked.spread, np.inf, GIVEN
    elif len(set(asked.ours)) > 1:
        spread, df, origin = float(np.std(asked.ours, ddof=1)), asked.n - 1.0, OWN
    elif stated is not None:
        spread, df, origin = stated, published_df, PUBLISHED
    evidence = Evidence(
        ours=np.array([asked.mean]),
        ours_n=asked.n,
        reference=asked.published,
        variance=spread**2,
        df=df,
        reference_n=asked.published_n or np.nan,
        reference_variance=np.nan if stated is None else stated**2,
        reference_df=np.nan if stated is None else published_df,
        margin=asked.margin,
        slack=asked.rounding,
    )
    test = element(compare(evidence, planned=asked.family), 0)
    tested = test.verdict != UNTESTED
    worlds = marks(evidence, planned=asked.family) if tested else {}
    designs = [
        Design(runs, spread, asked.family, reference_runs=behind, margin=asked.margin)
        for runs in (PLANNED if tested else ())
    ]
    return Judgement(
        question=asked,
        verdict=str(test.verdict),
        spread=spread,
        origin=origin,
        test=test if tested else None,
        marks={name: element(each, 0) for name, each in worlds.items()},
        asked={name: bool(each) for name, each in applies(evidence.reference_n).items()},
        limits={
            word: _largest_spread(evidence, asked.family, word) for word in (REPRODUCED, DRIFTED)
        },
        decision=_deciding(evidence, behind, asked.family) if test.verdict == UNDECIDED else None,
        sees={design.seeds: smallest_drift(design) for design in designs},
    )


def _deciding(evidence: Evidence, published_n: int, family: int) -> Decision:
    if runs := seeds_to_decide(element(evidence, 0), family=family):
        return Decision(runs)
    for behind in REFERENCE_RUNS:
        if behind > published_n:
            changed = element(replace(evidence, reference_n=behind), 0)
            if runs := seeds_to_decide(changed, family=family):
                return Decision(None, behind, runs)
    return Decision()


def _largest_spread(evidence: Evidence, family: int, verdict: str) -> float:
    unknown = {"reference_variance": np.nan, "reference_df": np.nan, "df": np.inf}

    def excess(spread: float) -> float:
        result = compare(replace(evidence, **unknown, variance=spread**2))
        if verdict == REPRODUCED:
            return float(result.p_equivalence[0]) - ALPHA
        return float(result.p_drift[0]) - ALPHA / family

    low, high = 1e-6, WIDEST
    if excess(low) > 0:
        return 0.0
    return float(optimize.brentq(excess, low, high)) if excess(high) > 0 else np.inf


def record(found: Judgement) -> dict[str, Any]:
    """Return the judgement as plain values for JSON; None for what is not known."""

    def known(value: Any) -> float | None:
        return float(value) if np.isfinite(value) else None

    test, asked = found.test, found.question
    numbers = ("se", "df", "low", "high", "p_equivalence", "p_drift")
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
        "spread": {"of_one_run": known(found.spread), "from": found.origin},
        "test": test and {name: known(getattr(test, name)) for name in numbers},
        "sensitivity": {
            name: {
                "assumption": MARKS[name],
                "applies": found.asked[name],
                "verdict": str(mark.verdict),
                "stands": bool(mark.verdict == found.verdict),
                "p_drift": known(mark.p_drift),
                "p_equivalence": known(mark.p_equivalence),
            }
            for name, mark in found.marks.items()
        },
        "largest_spread": {name: known(value) for name, value in found.limits.items()},
        "would_decide": found.decision and found.decision._asdict(),
        "smallest_drift_called": {str(n): known(drift) for n, drift in found.sees.items()},
    }


def as_text(found: Judgement) -> str:
    """Return the whole answer."""
    asked, test, verdict = found.question, found.test, found.verdict
    word = "inconclusive" if verdict == UNTESTED else verdict
    if verdict == DRIFTED:
        word += " high" if asked.mean > asked.published else " low"
    behind = _runs(asked.published_n) if asked.published_n else "one run, as no number is stated"
    lines = [
        f"{word}: {_MEANING[verdict]}",
        "",
        f"  ours          {asked.mean:.4g} ({_runs(asked.n)})",
        f"  published     {asked.published:g} ({behind})",
        f"  difference    {asked.mean - asked.published:+.2f} points, margin {asked.margin:g}",
    ]
    if test is not None:
        theirs = ", on both sides"
        if asked.published_spread is not None:
            theirs = f"; {asked.published_spread:g} as published on their side"
        df = "normal" if np.isinf(test.df) else f"t with {test.df:.3g} degrees of freedom"
        family = f"; the strictest level of {asked.family} tests is {ALPHA / asked.family:.2g}"
        stands = "stands" if found.stands else "does not stand"
        lines += [
            f"  90% interval  [{test.low:+.2f}, {test.high:+.2f}], with half a unit of the last "
            "printed digit",
            f"  spread        {found.spread:.3g} points for one run, {_ORIGIN[found.origin]}"
            f"{theirs}",
            f"  error         {test.se:.3g} points, {df}",
            f"  p             {test.p_equivalence:.2g} against 'reproduced', {test.p_drift:.2g} "
            f"against 'drifted'; level {ALPHA:g}{family if asked.family > 1 else ''}",
            "",
            f"Sensitivity: the verdict {stands} when an assumption fails",
        ]
    for name, mark in found.marks.items():
        state, after = "-      ", "makes no sense for a mean of several runs"
        if found.asked[name]:
            after = str(mark.verdict)
            state = "stands " if after == verdict else "CHANGES"
        lines.append(f"  {state}  {MARKS[name]}: {after}")
    return "\n".join([*lines, "", *_what_would_decide(found)])


def _what_would_decide(found: Judgement) -> list[str]:
    lines, decision = ["What would decide it"], found.decision
    stay = "of ours, if difference and spread stay as they are"
    if decision and decision.runs is not None:
        lines.append(f"  {_runs(decision.runs)} {stay}")
    elif decision and decision.reference_runs and decision.runs_with:
        lines += [
            "  no number of our runs alone: the published value is too uncertain",
            f"  a published mean of {decision.reference_runs} runs with "
            f"{_runs(decision.runs_with)} {stay}",
        ]
    elif decision:
        lines.append("  no number of runs: the difference is too close to the margin")
    runs = f"  with {_runs(found.question.n)} of ours and known spread"
    word = DRIFTED if found.limits[DRIFTED] > 0 else REPRODUCED
    if limit := found.limits[word]:
        lines.append(f"{runs}: {word} up to a spread of {limit:.2g} points, else inconclusive")
    else:
        lines.append(f"{runs}: no spread decides, the difference is the margin to within rounding")
    if found.sees:
        calls = ", ".join(f"{_runs(n)} {drift:.2g}" for n, drift in found.sees.items())
        lines.append(f"  the smallest drift called in 80% of cases, in points, with {calls}")
    return lines


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"
