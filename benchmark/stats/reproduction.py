"""Is a reference number reproduced? The tests behind every verdict, on arrays of numbers.

D = ours - reference is normal with mean delta, in points. Two questions are asked:

- Is |delta| below the margin? Two one-sided tests (Schuirmann 1987) answer. The number is
  reproduced if the interval of confidence 1 - 2 alpha lies inside the margin.
- Is |delta| above the margin? A test of |delta| <= margin answers, corrected over the table with
  Holm's procedure. If it rejects, the number has drifted.

The variances are moderated (``benchmark.stats.samples``). If only one side has a variance, the
variance is assumed for both sides. With two variances the smaller of the two degrees of freedom is
used, which bounds the error for every ratio of the variances.

These tests answer whether our runs and the authors' runs differ in expectation. A second question
is whether the method gives the printed number at all, whoever trains it. ``marks`` judges the table
again under four sensitivity assumptions (docs/statistics.md). ``STANDING`` names the assumptions
that answer the second question. ``tipping_points`` finds how far laboratories, or the two spreads,
may differ until a verdict changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from benchmark.stats.intervals import Floats, holm
from benchmark.stats.samples import Spread

ALPHA = 0.05
REPRODUCED = "reproduced"
DRIFTED = "drifted"
UNDECIDED = "inconclusive"
UNTESTED = "untested"
SPREAD = "spread"
BEST = "best_of_3"
TAILS = "tails"
LABORATORY = "laboratory"
MARKS: Mapping[str, str] = {
    BEST: "the published value is the best of three runs",
    LABORATORY: "laboratories differ by 0.5 points",
    SPREAD: "the published spread is twice what was assumed",
    TAILS: "scores have heavy tails",
}
STANDING = (BEST, LABORATORY)  # a verdict that holds under these assumptions stands
TIMES = 2.0
MEAN_OF_BEST = 3 / (2 * np.sqrt(np.pi))  # of three standard normal draws
VARIANCE_OF_BEST = 1 + np.sqrt(3) / (2 * np.pi) - MEAN_OF_BEST**2
# Keeps false drifts at 5% of tables where runs have Student's t distribution with 3 degrees of
# freedom (docs/statistics.md).
TAILS_DF = 4.0
BETWEEN_LABORATORIES = 0.5  # an assumption; benchmark/published/laboratories.py has what is known
WIDEST = {LABORATORY: 100.0, SPREAD: 1000.0}  # where the search for a tipping point ends
HALVINGS = 40  # of that search


class StandardError(NamedTuple):
    """A formula of the standard error: its square, its degrees of freedom, and when it applies."""

    square: str
    df: str
    when: str


# In the order in which they are tried. v, r and w are variances of one run of ours, of one run of
# the reference, and of one difference by seed. n, m and k are the numbers of these.
STANDARD_ERRORS = (
    StandardError("w / k", "df of w", "both sides have the same seeds"),
    StandardError("v / n + r / m", "the smaller df", "both sides have a variance"),
    StandardError("v (1/n + 1/m)", "df of v", "our variance stands for both"),
    StandardError("r (1/n + 1/m)", "df of r", "the reference's variance stands for both"),
)
UNKNOWN = -1  # no variance is known


@dataclass(frozen=True)
class Evidence:
    """Arrays of one shape (or scalars), in percentage points; NaN for what is not known.

    variance, df   moderated, of one run of ours; also of the reference and of paired differences
    reference_n    NaN: the number of runs is not stated, and the reference counts as one run
    identical      the scores are the same under every common seed: equal without a test
    slack          half a unit of the last printed digit, granted to both hypotheses
    laboratory     variance between laboratories, added to the variance of D and taken as known
    """

    ours: ArrayLike
    ours_n: ArrayLike
    reference: ArrayLike
    variance: ArrayLike = np.nan
    df: ArrayLike = np.nan
    reference_n: ArrayLike = np.nan
    reference_variance: ArrayLike = np.nan
    reference_df: ArrayLike = np.nan
    paired_n: ArrayLike = np.nan
    paired_variance: ArrayLike = np.nan
    paired_df: ArrayLike = np.nan
    identical: ArrayLike = False
    margin: ArrayLike = 1.0
    slack: ArrayLike = 0.0
    laboratory: ArrayLike = 0.0


@dataclass(frozen=True)
class TestResult:
    """The results of the tests, in arrays of one shape. Numbers without a test are NaN.

    case             index into ``STANDARD_ERRORS``, or ``UNKNOWN``
    low, high        interval of confidence 1 - 2 alpha, widened by the slack
    p_above, p_below one-sided tests of |delta| >= margin at the lower and upper edge
    p_equivalence    the larger of the two; small: reproduced
    p_drift          p of |delta| <= margin; small: drifted
    p_holm           ``p_drift`` after Holm; each row of the last axis is a family
    verdict          REPRODUCED, DRIFTED, UNDECIDED or UNTESTED
    """

    __test__ = False  # not a test of pytest's
    difference: Floats
    se: Floats
    df: Floats
    case: NDArray[np.int64]
    low: Floats
    high: Floats
    p_above: Floats
    p_below: Floats
    p_equivalence: Floats
    p_drift: Floats
    p_holm: Floats
    verdict: NDArray[np.str_]

    def at(self, place: int) -> TestResult:
        """Return the results of one number."""
        return TestResult(**{name: values[place] for name, values in vars(self).items()})


def arrays_of(evidence: Evidence) -> dict[str, Floats]:
    """Return the fields of ``evidence`` as arrays of float64, by name."""
    return {name: np.asarray(values, float) for name, values in vars(evidence).items()}


def standard_error(evidence: Evidence) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return the standard error of D, its df, and the index of ``STANDARD_ERRORS`` used.

    The variance between laboratories is taken as known, so the df are Satterthwaite's. Without a
    spread of runs both are NaN.
    """
    values = arrays_of(evidence)
    n = values["ours_n"]
    v = values["variance"]
    df = values["df"]
    r = values["reference_variance"]
    r_df = values["reference_df"]
    k = values["paired_n"]
    w = values["paired_variance"]
    m = np.where(values["reference_n"] >= 1, values["reference_n"], 1.0)
    has_v = np.isfinite(v) & (df > 0)
    has_r = np.isfinite(r) & (r_df > 0)
    paired = (k >= 1) & np.isfinite(w) & (values["paired_df"] > 0)
    conditions = [paired, has_v & has_r, has_v, has_r]
    dfs = [values["paired_df"], np.minimum(df, r_df), df, r_df]
    case = np.select(conditions, list(range(len(conditions))), UNKNOWN)
    with np.errstate(divide="ignore", invalid="ignore"):
        both = 1 / n + 1 / m
        squares = [w / k, v / n + r / m, v * both, r * both]
        square = np.select(conditions, squares, np.nan)
        square = np.where(square > 0, square, np.nan)
        df = np.select(conditions, dfs, np.nan)
        total = square + values["laboratory"]
        ratio = total / square
    return np.sqrt(total), df * ratio**2, case


def compare(evidence: Evidence, alpha: float = ALPHA, planned: int = 0) -> TestResult:
    """Return the test results of each element; ``alpha`` sets the confidence of the interval.

    Without a spread there is no test, unless the runs are identical. ``planned`` is the number of
    tests in the plan, if fewer could be made. With a variance between laboratories, each p-value
    and the interval are the larger ones of the tests with it and without it.
    """
    values = arrays_of(evidence)
    difference, margin, slack, identical, se, df, case = np.broadcast_arrays(
        values["ours"] - values["reference"],
        values["margin"],
        values["slack"],
        values["identical"],
        *standard_error(evidence),
    )
    room = margin - slack
    size = np.abs(difference)

    def tested(se: Floats, df: Floats) -> Floats:
        """Return p_above, p_below, p_drift and half the width of the interval."""

        def tail(distance: Floats) -> Floats:
            """Return P(T * se >= distance)."""
            return np.asarray(special.stdtr(df, -distance / se), float)

        # one-sided for a wide margin, two-sided for a margin of zero
        p_drift = tail(size - margin - slack) + tail(size + margin + slack)
        half = _quantile(1 - alpha, df) * se + slack
        return np.stack([tail(room + difference), tail(room - difference), p_drift, half])

    found = tested(se, df)
    if values["laboratory"].any():
        # A known variance raises the df, too. Yet more variance alone must decide nothing.
        without = standard_error(replace(evidence, laboratory=0.0))
        found = np.maximum(found, tested(*without[:2]))
    p_above, p_below, p_drift, half = found
    same = identical > 0
    p_equivalence = np.where(same, 0.0, np.maximum(p_above, p_below))
    p_drift = np.where(same, 1.0, np.minimum(p_drift, 1.0))
    p_holm = holm(np.atleast_1d(p_drift), planned).reshape(p_drift.shape)
    cases = [np.isnan(p_drift), p_equivalence <= alpha, p_holm <= alpha]
    return TestResult(
        difference=difference,
        se=np.where(same, 0.0, se),
        df=df,
        case=case,
        low=np.where(same, difference, difference - half),
        high=np.where(same, difference, difference + half),
        p_above=np.where(same, 0.0, p_above),
        p_below=np.where(same, 0.0, p_below),
        p_equivalence=p_equivalence,
        p_drift=p_drift,
        p_holm=p_holm,
        verdict=np.select(cases, [UNTESTED, REPRODUCED, DRIFTED], UNDECIDED),
    )


def _quantile(probability: float, df: Floats) -> Floats:
    """Return Student's t quantile at each element of ``df``; each distinct df is inverted once."""
    distinct, index = np.unique(df, return_inverse=True)
    quantiles = np.asarray(special.stdtrit(distinct, probability), float)
    return quantiles[index].reshape(df.shape)


def applies(reference_n: ArrayLike, published: ArrayLike = True) -> dict[str, NDArray[np.bool_]]:
    """Return where each of ``MARKS`` makes sense. Elsewhere the verdict stands.

    ``published`` is False for our own frozen runs. Only TAILS applies to them, because differences
    between laboratories play no role for our own runs. BEST says that the authors reported the best
    of three runs, so BEST applies to a single published run and not to a mean.
    """
    foreign = np.asarray(published, bool)
    several = np.asarray(reference_n, float) >= 2
    single = np.asarray(foreign & ~several)
    return {BEST: single, LABORATORY: foreign, SPREAD: foreign, TAILS: np.asarray(True)}


def world_of(evidence: Evidence, mark: str, size: Floats | None = None) -> dict[str, Any]:
    """Return the fields of ``evidence`` that change under the assumption of a mark.

    ``size`` is the spread between laboratories, or the factor of the published spread. None: the
    usual size of the mark.
    """
    stated = np.isfinite(np.asarray(evidence.reference_variance, float))
    variance = np.where(stated, evidence.reference_variance, evidence.variance)
    theirs = {"reference_df": np.where(stated, evidence.reference_df, evidence.df)}
    if mark == LABORATORY:
        return {"laboratory": (BETWEEN_LABORATORIES if size is None else size) ** 2}
    if mark == SPREAD:
        return theirs | {"reference_variance": (TIMES if size is None else size) ** 2 * variance}
    if mark == BEST:
        best = np.asarray(evidence.reference, float) - MEAN_OF_BEST * np.sqrt(variance)
        return theirs | {"reference_variance": VARIANCE_OF_BEST * variance, "reference": best}
    degrees = ("df", "reference_df", "paired_df")
    return {name: np.minimum(getattr(evidence, name), TAILS_DF) for name in degrees}


def marks(
    evidence: Evidence, *, published: ArrayLike = True, alpha: float = ALPHA, planned: int = 0
) -> dict[str, TestResult]:
    """Return the test results under the assumption of each mark.

    A number that a mark does not apply to is tested without the assumption.
    """
    worlds = {}
    for name, where in applies(evidence.reference_n, published).items():
        changed = {}
        for field, values in world_of(evidence, name).items():
            changed[field] = np.where(where, values, getattr(evidence, field))
        worlds[name] = compare(replace(evidence, **changed), alpha, planned)
    return worlds


def tipping_points(
    evidence: Evidence, mark: str, *, alpha: float = ALPHA, planned: int = 0
) -> Floats:
    """Return the tipping point of each verdict (N,): the largest size of a mark without a change.

    For ``LABORATORY`` the size is a spread between laboratories, in points. For ``SPREAD`` it is
    the factor of the published spread over the assumed one. NaN: the verdict is open. Because of
    Holm, the whole table is judged at the size of each number in turn.
    """
    verdict = np.atleast_1d(compare(evidence, alpha, planned).verdict)
    decided = np.flatnonzero(np.isin(verdict, (REPRODUCED, DRIFTED)))
    low = np.full(decided.shape, float(mark == SPREAD))
    high = np.full(decided.shape, WIDEST[mark])
    for _ in range(HALVINGS if decided.size else 0):
        middle = (low + high) / 2
        changed = replace(evidence, **world_of(evidence, mark, middle[:, None]))
        verdicts = compare(changed, alpha, planned).verdict
        stays = verdicts[range(decided.size), decided] == verdict[decided]
        low = np.where(stays, middle, low)
        high = np.where(stays, high, middle)
    points = np.full(verdict.shape, np.nan)
    points[decided] = low
    return points


class RangeTest(NamedTuple):
    """Mean of ``n`` values, interval of confidence 1 - 2 alpha, and both p-values (NaN: no test).

    estimate   the mean
    p          of the hypothesis that the mean lies outside the range; small: the mean lies inside
    p_against  of the hypothesis that the mean lies inside the range
    """

    n: int
    estimate: float
    ci_low: float = np.nan
    ci_high: float = np.nan
    p: float = np.nan
    p_against: float = np.nan


def range_test(values: Floats, low: float, high: float, alpha: float, shared: Spread) -> RangeTest:
    """Return two one-sided t-tests: does the mean of ``values`` (n,) lie in ``low`` to ``high``?

    An infinite ``high`` is open. ``shared`` is the spread of one value, moderated with the spreads
    of sister comparisons. One value, or values without a spread, give no test, because the error of
    the mean cannot be estimated.
    """
    n = len(values)
    mean = float(values.mean()) if n else np.nan
    if n < 2 or not shared.df > 0:
        return RangeTest(n, mean)
    se = shared.sd / np.sqrt(n)
    df = shared.df
    half = se * float(special.stdtrit(df, 1 - alpha))
    ends = np.array([mean - low, high - mean]) / se
    inside = special.stdtr(df, -ends)
    outside = special.stdtr(df, ends)
    sides = 2 if np.isfinite(high) else 1
    against = min(1.0, sides * float(outside.min()))
    return RangeTest(n, mean, mean - half, mean + half, float(inside.max()), against)
