"""Before the runs: what will the planned seeds be able to say, and at which level is each look?

The tests are those of ``benchmark.stats.reproduction`` at the strictest level of Holm, alpha over
the size of the family. Sister cells of equal spread lend their degrees of freedom. Power follows
from the noncentral t distribution; ``docs/statistics.md`` compares it with simulation.

A study with planned looks (interim analyses) tests at the same level at each look (Pocock 1977).
If all runs are independent draws, a true hypothesis on its edge is rejected at any look with
probability alpha. A reference that is the same at every look makes this probability smaller.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import scipy  # loads scipy.stats, which takes half a second, at its first use
from scipy import optimize, special

from benchmark.stats.intervals import Floats
from benchmark.stats.reproduction import (
    ALPHA,
    Evidence,
    applies,
    arrays_of,
    compare,
    world_of,
)
from benchmark.stats.samples import LIMIT, SHARE, TIMES

if TYPE_CHECKING:
    from benchmark.study.model import Study

POWER = 0.8
MOST_SEEDS = 100
MOST_RUNS = 1000


@dataclass(frozen=True)
class Design:
    """A number that is going to be judged.

    seeds           planned runs of ours
    spread          expected standard deviation of one run, in points
    family          planned tests in the table of the number
    sisters         number of sister cells, each with as many seeds
    reference_runs  runs behind the reference
    margin          points
    slack           half a unit of the last printed digit, granted to both hypotheses
    """

    seeds: int
    spread: float
    family: int = 1
    sisters: int = 0
    reference_runs: int = 1
    margin: float = 1.0
    alpha: float = ALPHA
    slack: float = 0.0

    @property
    def df(self) -> float:
        """The degrees of freedom, with those that equal sisters lend."""
        own = self.seeds - 1
        return own + min(LIMIT, TIMES * own, SHARE * self.sisters * own)

    @property
    def edge(self) -> float:
        """The largest difference that is no drift, in points."""
        return self.margin + self.slack

    @property
    def se(self) -> float:
        """The standard error of ours - reference, in points."""
        return self.spread * float(np.sqrt(1 / self.seeds + 1 / self.reference_runs))


def power(design: Design, drift: float) -> float:
    """Return the probability that a true difference of ``drift`` points is called."""
    if design.seeds < 2:
        return 0.0
    critical = -float(special.stdtrit(design.df, design.alpha / design.family))  # Holm's first
    shift = (drift - design.edge) / design.se
    return _above(critical, design.df, shift)


def _above(critical: float, df: float, shift: float) -> float:
    """Return P(T > critical) of the noncentral t distribution, which scipy gives as NaN near 1."""
    return float(np.nan_to_num(1 - special.nctdtr(df, shift, critical), nan=1.0))


@lru_cache(maxsize=4096)
def detectable_shift(df: float, alpha: float = ALPHA) -> float:
    """Return the true difference, in standard errors, that a two-sided t-test sees with ``POWER``.

    NaN without degrees of freedom.
    """
    if not df > 0:
        return float("nan")
    critical = -float(special.stdtrit(df, alpha / 2))

    def seen(shift: float) -> float:
        # NaN where the tail is too small
        lower = float(np.nan_to_num(special.nctdtr(df, shift, -critical)))
        return _above(critical, df, shift) + lower

    high = 1.0
    while seen(high) < POWER:
        high *= 2
    return float(optimize.brentq(lambda shift: seen(shift) - POWER, 0.0, high, xtol=1e-9))


def smallest_drift(design: Design) -> float:
    """Return the smallest true difference that is called with probability ``POWER``; NaN: none."""
    if design.seeds < 2:
        return float("nan")
    high = design.edge + design.se
    while power(design, high) < POWER:
        high = 2 * high
    return float(optimize.brentq(lambda drift: power(design, drift) - POWER, design.edge, high))


def chance_to_stand(design: Design, drift: float) -> float:
    """Return the probability that a drift from a published number is called under all marks."""
    if design.seeds < 2:
        return 0.0
    variance = design.spread**2 * _quantiles(design.df)
    limits = []
    evidence = Evidence(0.0, design.seeds, 0.0, variance, design.df, design.reference_runs)
    for mark, asked in applies(evidence.reference_n).items():
        if asked:
            assumed = replace(evidence, **world_of(evidence, mark))
            limits.append(compare(assumed, design.alpha / design.family).high)
    strictest = np.max(np.broadcast_arrays(*limits), axis=0)
    room = (drift - design.margin - strictest) / design.se
    return float(special.ndtr(room).mean())


def _quantiles(df: float) -> Floats:
    """Return 400 equally likely ratios of an estimated variance to the true variance."""
    probabilities = (np.arange(400) + 0.5) / 400
    return np.asarray(scipy.stats.chi2.ppf(probabilities, df) / df)


def seeds_needed(
    design: Design, drift: float, chance: Callable[[Design, float], float] = power
) -> int | None:
    """Return the fewest seeds that call a drift with probability ``POWER``.

    None: no number of seeds does, because one printed value stays uncertain however many runs we
    make, or because the drift lies inside the margin. ``chance`` is ``power`` or
    ``chance_to_stand``.
    """

    def called(seeds: int) -> float:
        return chance(replace(design, seeds=seeds), drift)

    if called(MOST_SEEDS) < POWER:
        return None
    return bisect_left(range(MOST_SEEDS + 1), POWER, lo=2, key=called)


def chance_to_confirm(design: Design, drift: float = 0.0) -> float:
    """Return the probability that a number ``drift`` points away is called reproduced."""
    if design.seeds < 2:
        return 0.0
    shift = drift / design.se
    reach = (design.margin - design.slack) / design.se
    # The interval is inside the margin when |D| / se < reach / s - t, for the observed s. The mean
    # is taken over the distribution of s.
    critical = special.stdtrit(design.df, 1 - design.alpha)
    room = reach - critical * np.sqrt(_quantiles(design.df))
    inside = special.ndtr(room - shift) + special.ndtr(room + shift) - 1
    return float(np.where(room > 0, inside, 0.0).mean())


@lru_cache(maxsize=65536)
def chance_to_decide(design: Design, drift: float) -> float:
    """Return the probability of the right verdict: inside the margin reproduced, beyond drifted."""
    size = abs(drift)
    if size < design.margin:
        return chance_to_confirm(design, size)
    return power(design, size) if size > design.margin else 0.0


def seeds_to_decide(evidence: Evidence, *, family: int = 1, alpha: float = ALPHA) -> Floats:
    """Return the fewest seeds above the present ones that decide, if difference and spread stay.

    One value for each number of ``evidence``. Paired references get as many seeds as ours. A drift
    counts at the strictest level of Holm, ``alpha`` / ``family``. NaN: ``MOST_RUNS`` seeds do not
    decide either.
    """
    columns = {name: values[..., None] for name, values in arrays_of(evidence).items()}
    more = np.arange(1.0, MOST_RUNS + 1)  # seeds
    paired = columns["paired_n"] >= 1
    seeds = more + np.where(paired, columns["paired_n"], columns["ours_n"])
    more_pairs = np.where(paired, more, 0.0)
    for name in ("paired_n", "paired_df"):
        columns[name] = columns[name] + more_pairs
    for name in ("ours_n", "df"):
        columns[name] = columns[name] + (more - more_pairs)
    result = compare(Evidence(**columns), alpha)
    decided = (result.p_equivalence <= alpha) | (result.p_drift <= alpha / max(family, 1))
    deciding = np.where(decided & (seeds <= MOST_RUNS), seeds, np.inf)
    fewest = deciding.min(axis=-1)
    return np.where(np.isfinite(fewest), fewest, np.nan)


@lru_cache(maxsize=256)
def pocock(looks: tuple[int, ...], alpha: float = ALPHA) -> float:
    """Return the one-sided level of the test after each of ``looks``, rising numbers of seeds.

    The levels of all looks together spend ``alpha``. The level is rounded down to 4 digits.
    """
    if len(looks) == 1:
        return alpha
    n = np.array(looks, float)
    fewer = np.minimum.outer(n, n)
    more = np.maximum.outer(n, n)
    joint = scipy.stats.multivariate_normal(np.zeros(len(n)), np.sqrt(fewer / more))

    def excess(bound: float) -> float:
        bounds = np.full(len(n), bound)
        inside = joint.cdf(bounds, rng=np.random.default_rng(0))
        return float(1 - inside - alpha)

    least = -special.ndtri(alpha) * 0.99
    most = -special.ndtri(alpha / len(looks)) * 1.01
    level = special.ndtr(-optimize.brentq(excess, least, most, xtol=1e-6))
    return float(np.floor(level * 1e4) / 1e4)


def level_of(study: Study, alpha: float = ALPHA) -> float:
    """Return the one-sided level at which a study tests at each of its looks."""
    return pocock(study.looks, alpha) if study.looks else alpha


def at_level(study: Study) -> Study:
    """Return the study with the alpha of its (two-sided) comparisons at the level of a look."""
    alpha = 2 * level_of(study, study.comparison.alpha / 2)
    return replace(study, comparison=replace(study.comparison, alpha=alpha))
