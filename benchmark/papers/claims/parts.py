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
from benchmark.stats.range_test import range_test
from benchmark.stats.samples import Spread, shared_spreads

AGAINST = 0.05
_OWN = ("note", "wins")  # of a part, and no column of the claim that it decides
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
    """A part with its test, as a row of ``claims_parts.csv``; ratios as such, not as logarithms."""

    __test__ = False  # not a test of pytest's
    part: str
    n: int  # seeds
    estimate: float
    ci_low: float  # of confidence 1 - 2 alpha
    ci_high: float
    unit: str
    low: float  # the sentence says that the mean lies between low and high (empty: open)
    high: float
    p: float  # that it does not
    p_against: float  # that it does, before Holm
    note: str
    wins: bool | None = None

    @classmethod
    def of(cls, part: Part, alpha: float, shared: Spread | None = None) -> "TestedPart":
        """Return a part with the test at level ``alpha``; its spread may be shared."""
        test = range_test(part.values, part.low, part.high, alpha, shared)
        mean, ci_low, ci_high, low, high = (
            np.nan if not np.isfinite(end) else float(np.exp(end) if part.unit == RATIO else end)
            for end in (test.mean, test.ci_low, test.ci_high, part.low, part.high)
        )
        note = part.note or ("" if test.n or part.wins is not None else "no common seed")
        numbers = (test.n, mean, ci_low, ci_high, part.unit, low, high, test.p, test.p_against)
        return cls(part.label, *numbers, note, part.wins)

    @property
    def is_run(self) -> bool:
        """Whether there are runs, of which divergence may decide."""
        return self.n > 0 or self.wins is not None

    @property
    def p_fails(self) -> float:
        """The p that the part does not hold; NaN where that cannot be told."""
        return self.p if self.wins is None else float(not self.wins)

    @property
    def text(self) -> str:
        """The part for a reader: label, estimate, interval, n."""
        if self.wins is not None:
            return f"{self.part}: {self.note}"
        sign = "" if self.unit == RATIO else "+"
        interval = f" [{self.ci_low:{sign}.2f}, {self.ci_high:{sign}.2f}]"
        shown = interval if np.isfinite(self.ci_low) else ""
        return f"{self.part} {self.estimate:{sign}.2f}{shown} {self.unit}, n {self.n}"


@dataclass(frozen=True)
class JudgedClaim:
    """One reading of a claim with its verdict: a row of ``claims.csv``, and the ``tested`` parts.

    From ``part`` on, the columns are those of the part that decides.
    """

    claim: str = ""
    paper: str = ""
    stated_in: str = ""
    sentence: str = ""
    kind: str = ""
    reading: str = ""
    condition: str = ""  # as published; in the reading "here" the data that were asked or shown
    verdict: str = ""
    reason: str = ""
    outside: str = ""  # why no run of the suite can decide it as published
    parts: int = 0
    parts_run: int = 0
    parts_holding: int = 0
    alpha: float = AGAINST  # level at which each part has to hold
    p_contradicted: float = np.nan  # smallest p that some part shows the opposite, after Holm
    q_contradicted: float = np.nan  # adjusted for the false discovery rate over all claims
    part: str | None = None
    n: int | None = None
    estimate: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    unit: str | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_against: float | None = None
    tested: tuple[TestedPart, ...] = ()
    decisive: TestedPart | None = None


def decide(parts: Sequence[Part], alpha: float, against_at: float = AGAINST) -> JudgedClaim:
    """Return the verdict on a sentence; each of its ``parts`` has to hold at level ``alpha``.

    ``against_at`` is the level at which some part contradicts it.
    """
    cells = {
        at: (spread(part.values) if len(part.values) > 1 else np.nan, len(part.values))
        for at, part in enumerate(parts)
    }
    spreads = shared_spreads(cells, lambda at: parts[at].sisters or at)
    tested = tuple(TestedPart.of(part, alpha, spreads[at]) for at, part in enumerate(parts))
    run = [each for each in tested if each.is_run]
    judged = [each for each in run if np.isfinite(each.p_fails)]
    holding = sum(each.p_fails <= alpha for each in judged)

    def found(word: str, reason: str, deciding: TestedPart, least: float = np.nan) -> JudgedClaim:
        numbers = {name: value for name, value in vars(deciding).items() if name not in _OWN}
        return JudgedClaim(
            verdict=word,
            reason=reason,
            parts=len(tested),
            parts_run=len(run),
            parts_holding=holding,
            p_contradicted=least,
            tested=tested,
            decisive=deciding,
            **numbers,
        )

    if not run:
        reason = "; ".join(dict.fromkeys(each.note for each in tested)) or "no run"
        return JudgedClaim(verdict=NOT_RUN, reason=reason, tested=tested, parts=len(tested))
    if lost := [each for each in judged if each.wins is False]:
        return found(CONTRADICTED, lost[0].text, lost[0], 0.0)
    if not judged:
        why = "one seed decides nothing: run at least 2"
        if any(each.n > 1 for each in run):
            why = "no spread between the seeds, no test"
        return found(INCONCLUSIVE, f"{why}; {run[0].text}", run[0])
    against = holm([1.0 if each.wins else each.p_against for each in judged])
    worst = int(np.argmin(against))
    least = float(against[worst])
    if least <= against_at:
        tail = f"Holm p = {least:.2g} against, of {_count(len(judged))}"
        reason = f"{judged[worst].text}; {tail}"
        return found(CONTRADICTED, reason, judged[worst], least)
    weakest = max(judged, key=lambda each: each.p_fails)
    if holding == len(tested):
        reason = f"{_count(holding)}, weakest: {weakest.text}"
        return found(SUPPORTED, reason, weakest, least)
    holds = f"{holding} of {_count(len(tested))} at p <= {alpha:g}"
    if missing := [each for each in tested if np.isnan(each.p_fails)]:
        lacking = missing[0].note or "one seed or no spread"
        holds += f"; {len(missing)} could not be tested (first: {missing[0].part}: {lacking})"
    reason = f"{holds}; weakest: {weakest.text}, p = {weakest.p:.2g}"
    return found(INCONCLUSIVE, reason, weakest, least)


def _count(parts: int) -> str:
    return "1 part" if parts == 1 else f"{parts} parts"
