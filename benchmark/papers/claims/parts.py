"""The one test behind every claim: one number per seed, and the range in which the sentence says its mean lies.

A sentence becomes *parts*: one comparison in one place, reduced to one number per seed (a difference of paired
runs, a slope over batch sizes, a log ratio). Two one-sided t-tests judge a part: ``p`` of the hypothesis that the
mean lies outside ``low`` to ``high`` (small: the part holds), ``p_against`` of the hypothesis that it lies inside
(small: the opposite holds).

- supported: **every** part holds at ``alpha``. An intersection-union test: no correction is needed, since one
  false part is enough to keep the sentence from being supported.
- contradicted: **some** part shows the opposite at 5%, after Holm over the parts that could be tested. It goes
  before supported: a sentence about everything is wrong if it is wrong once.
- not_run: no part has runs; inconclusive: everything else. One seed, or no spread, gives no test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import special

from benchmark.papers.verdicts.vocabulary import CONTRADICTED, INCONCLUSIVE, NOT_RUN, SUPPORTED
from benchmark.stats.intervals import spread
from benchmark.stats.multiple import holm

AGAINST = 0.05
RATIO = "times"  # unit of parts whose values are logarithms of a ratio


@dataclass(frozen=True)
class Part:
    """``values``: one per seed, none where runs are missing, which ``note`` explains."""

    label: str
    values: np.ndarray = field(default_factory=lambda: np.empty(0))
    low: float = 0.0
    high: float = np.inf
    unit: str = "points"
    note: str = ""


@dataclass(frozen=True)
class Tested:
    """A part with its mean, its interval of confidence 1 - 2 alpha, and both p-values (NaN: no test)."""

    part: Part
    n: int
    mean: float
    ci_low: float
    ci_high: float
    p: float
    p_against: float

    def shown(self, value: float) -> float:
        """Returns a number of this part in its unit, NaN for an open end: ratios come back from logarithms."""
        if not np.isfinite(value):
            return np.nan
        return float(np.exp(value)) if self.part.unit == RATIO else float(value)

    @property
    def text(self) -> str:
        """Returns the part as a reader sees it: label, estimate, interval, n."""
        mean, low, high = map(self.shown, (self.mean, self.ci_low, self.ci_high))
        sign = "" if self.part.unit == RATIO else "+"
        interval = f" [{low:{sign}.2f}, {high:{sign}.2f}]" if np.isfinite(low) else ""
        return f"{self.part.label} {mean:{sign}.2f}{interval} {self.part.unit}, n {self.n}"


@dataclass(frozen=True)
class Decision:
    """The verdict on one reading of a claim; ``decisive`` is the part that it hangs on, None without any runs."""

    verdict: str
    reason: str
    tested: tuple[Tested, ...] = ()
    holding: int = 0
    decisive: Tested | None = None


def test_part(part: Part, alpha: float) -> Tested:
    """Returns the part's estimate and both one-sided p-values."""
    n = len(part.values)
    mean = float(part.values.mean()) if n else np.nan
    sd = spread(part.values) if n > 1 else 0.0
    if sd == 0:
        return Tested(part, n, mean, np.nan, np.nan, np.nan, np.nan)
    se, df = sd / np.sqrt(n), n - 1
    half = se * float(special.stdtrit(df, 1 - alpha))
    ends = np.array([mean - part.low, part.high - mean]) / se
    inside, outside = special.stdtr(df, -ends), special.stdtr(df, ends)
    sides = int(np.isfinite(part.low)) + int(np.isfinite(part.high))
    against = min(1.0, sides * float(outside.min()))
    return Tested(part, n, mean, mean - half, mean + half, float(inside.max()), against)


test_part.__test__ = False  # not a test of pytest's


def decide(parts: Sequence[Part], alpha: float) -> Decision:
    """Returns the verdict on a sentence from its ``parts``; ``alpha`` is the level at which each has to hold."""
    tested = tuple(test_part(part, alpha) for part in parts)
    run = [item for item in tested if item.n]
    if not run:
        return Decision(
            NOT_RUN, "; ".join(dict.fromkeys(item.part.note for item in tested)) or "no run", tested
        )
    judged = [item for item in run if np.isfinite(item.p)]
    holding = sum(item.p <= alpha for item in judged)
    if not judged:
        why = "one seed decides nothing: run at least 2"
        if any(item.n > 1 for item in run):
            why = "no spread between the seeds, no test"
        return Decision(INCONCLUSIVE, f"{why}; {run[0].text}", tested, 0, run[0])
    against = holm([item.p_against for item in judged])
    worst = int(np.argmin(against))
    if against[worst] <= AGAINST:
        reason = (
            f"{judged[worst].text}; Holm p = {against[worst]:.2g} against, of {_count(len(judged))}"
        )
        return Decision(CONTRADICTED, reason, tested, holding, judged[worst])
    weakest = max(judged, key=lambda item: item.p)
    if holding == len(tested):
        return Decision(
            SUPPORTED, f"{_count(holding)}, weakest: {weakest.text}", tested, holding, weakest
        )
    holds = f"{holding} of {_count(len(tested))} at p <= {alpha:g}"
    missing = [item for item in tested if not np.isfinite(item.p)]
    if missing:
        lacking = missing[0].part.note or "one seed or no spread"
        holds += f"; {len(missing)} could not be tested (first: {missing[0].part.label}: {lacking})"
    return Decision(
        INCONCLUSIVE,
        f"{holds}; weakest: {weakest.text}, p = {weakest.p:.2g}",
        tested,
        holding,
        weakest,
    )


def _count(parts: int) -> str:
    return "1 part" if parts == 1 else f"{parts} parts"
