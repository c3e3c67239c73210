"""The one test behind every claim: a number per seed, and the range said to hold its mean.

A sentence becomes *parts*: one comparison under one condition, reduced to one number per seed (a
difference of paired runs, a slope over batch sizes, a log ratio). Two one-sided t-tests judge a
part (``benchmark.stats.range_test``), with a variance that sister parts share. A loss that diverges
loses its comparison without any test.

- supported: **every** part holds at ``alpha``. An intersection-union test: no correction is needed,
  since one false part is enough to keep the sentence from being supported.
- contradicted: **some** part shows the opposite at 5%, after Holm over the parts that could be
  tested. It goes before supported: a sentence about everything is wrong if it is wrong once.
- not_run: no part has runs; inconclusive: everything else. One seed gives no test.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmark.papers.verdicts.vocabulary import CONTRADICTED, INCONCLUSIVE, NOT_RUN, SUPPORTED
from benchmark.stats.families import holm
from benchmark.stats.intervals import spread
from benchmark.stats.range_test import RangeTest, range_test
from benchmark.stats.samples import Spread, shared_spreads

AGAINST = 0.05
RATIO = "times"  # unit of parts whose values are logarithms of a ratio


@dataclass(frozen=True)
class Part:
    """One comparison.

    values   one per seed, none where runs are missing, which ``note`` explains
    low      the sentence says that the mean lies between ``low`` and ``high``
    sisters  parts of one claim with the same word share a spread; "" shares with none
    wins     True or False where divergence decides without a test
    """

    label: str
    values: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    low: float = 0.0
    high: float = np.inf
    unit: str = "points"
    note: str = ""
    sisters: str = ""
    wins: bool | None = None


@dataclass(frozen=True)
class TestedPart:
    """A part with its test."""

    __test__ = False  # not a test of pytest's
    part: Part
    test: RangeTest

    def in_unit(self, value: float) -> float:
        """Return a number in the unit of this part (no longer a logarithm), NaN for an open end."""
        if not np.isfinite(value):
            return np.nan
        return float(np.exp(value)) if self.part.unit == RATIO else float(value)

    @property
    def text(self) -> str:
        """The part for a reader: label, estimate, interval, n."""
        test = self.test
        if self.part.wins is not None:
            return f"{self.part.label}: {self.part.note}"
        mean, low, high = map(self.in_unit, (test.mean, test.ci_low, test.ci_high))
        sign = "" if self.part.unit == RATIO else "+"
        interval = f" [{low:{sign}.2f}, {high:{sign}.2f}]" if np.isfinite(low) else ""
        return f"{self.part.label} {mean:{sign}.2f}{interval} {self.part.unit}, n {test.n}"


@dataclass(frozen=True)
class Decision:
    """The verdict on one reading of a claim, and the part that it hangs on (None without runs).

    ``against`` is the smallest p that some part shows the opposite, after Holm over the parts.
    """

    verdict: str
    reason: str
    tested: tuple[TestedPart, ...] = ()
    holding: int = 0
    decisive: TestedPart | None = None
    against: float = np.nan


def decide(parts: Sequence[Part], alpha: float, against_at: float = AGAINST) -> Decision:
    """Return the verdict on a sentence; each of its ``parts`` has to hold at level ``alpha``.

    ``against_at`` is the level at which some part contradicts it.
    """
    spreads = _spreads(parts)
    tested = tuple(
        TestedPart(part, range_test(part.values, part.low, part.high, alpha, spreads[at]))
        for at, part in enumerate(parts)
    )
    run = [each for each in tested if each.test.n or each.part.wins is not None]
    if not run:
        reason = "; ".join(dict.fromkeys(each.part.note for each in tested)) or "no run"
        return Decision(NOT_RUN, reason, tested)
    judged = [each for each in run if np.isfinite(each.test.p) or each.part.wins is not None]
    holding = sum(_holds(each, alpha) for each in judged)
    lost = [each for each in judged if each.part.wins is False]
    if lost:
        return Decision(CONTRADICTED, lost[0].text, tested, holding, lost[0], 0.0)
    if not judged:
        why = "one seed decides nothing: run at least 2"
        if any(each.test.n > 1 for each in run):
            why = "no spread between the seeds, no test"
        return Decision(INCONCLUSIVE, f"{why}; {run[0].text}", tested, 0, run[0])
    against = holm([1.0 if each.part.wins else each.test.p_against for each in judged])
    worst = int(np.argmin(against))
    least = float(against[worst])
    if least <= against_at:
        tail = f"Holm p = {least:.2g} against, of {_count(len(judged))}"
        reason = f"{judged[worst].text}; {tail}"
        return Decision(CONTRADICTED, reason, tested, holding, judged[worst], least)
    weakest = max(judged, key=lambda each: 0.0 if each.part.wins else each.test.p)
    if holding == len(tested):
        reason = f"{_count(holding)}, weakest: {weakest.text}"
        return Decision(SUPPORTED, reason, tested, holding, weakest, least)
    holds = f"{holding} of {_count(len(tested))} at p <= {alpha:g}"
    known = set(map(id, judged))  # parts of one label cannot be compared: they hold arrays
    missing = [each.part for each in tested if id(each) not in known]
    if missing:
        lacking = missing[0].note or "one seed or no spread"
        holds += f"; {len(missing)} could not be tested (first: {missing[0].label}: {lacking})"
    reason = f"{holds}; weakest: {weakest.text}, p = {weakest.test.p:.2g}"
    return Decision(INCONCLUSIVE, reason, tested, holding, weakest, least)


def _holds(each: TestedPart, alpha: float) -> bool:
    return each.part.wins if each.part.wins is not None else bool(each.test.p <= alpha)


def _spreads(parts: Sequence[Part]) -> dict[int, Spread]:
    """Return the spread of one value of each part, shared among sisters."""
    cells = {
        at: (spread(part.values) if len(part.values) > 1 else np.nan, len(part.values))
        for at, part in enumerate(parts)
    }
    return shared_spreads(cells, lambda at: parts[at].sisters or at)


def _count(parts: int) -> str:
    return "1 part" if parts == 1 else f"{parts} parts"
