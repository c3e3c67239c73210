"""Is a reference number reproduced? The tests behind every verdict, on arrays of numbers.

D = ours - reference is normal with mean delta. Two questions are asked of it, in points:

- is |delta| below the margin? Two one-sided tests (Schuirmann 1987): reproduced when the interval
  of confidence 1 - 2 alpha lies inside the margin;
- is |delta| above the margin? A test of |delta| <= margin, corrected over the table with Holm's
  procedure: drifted.

The variances are moderated ones (``benchmark.stats.moderation``). Where only one side has a
variance it stands for both: an assumption, which ``benchmark.stats.sensitivity`` varies. For two
variances the smaller of the two degrees of freedom is used, which bounds the error for every ratio
of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from benchmark.stats.families import holm
from benchmark.stats.intervals import Floats

ALPHA = 0.05
REPRODUCED, DRIFTED, UNDECIDED, UNTESTED = "reproduced", "drifted", "inconclusive", "untested"


@dataclass(frozen=True)
class StandardError:
    """One way to the standard error: its square, its degrees of freedom, and when it applies."""

    square: str
    df: str
    when: str


# In the order in which they are tried; v, r and w are variances of one run of ours, of one run of
# the reference, and of one difference by seed; n, m and k their numbers.
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
    reference_n    a reference without a stated number of runs is one draw
    identical      the same bits under every common seed: equal without any test
    slack          half a unit of the last printed digit; granted to both hypotheses
    laboratory     variance between laboratories, added to that of D
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
    """What the tests found, in arrays of one shape; NaN where there is no test.

    case             index into ``STANDARD_ERRORS``, or ``UNKNOWN``
    low, high        interval of confidence 1 - 2 alpha, widened by the slack
    p_above, p_below one-sided tests of |delta| >= margin at the lower and upper edge
    p_equivalence    the larger of them; small: reproduced
    p_drift          p of |delta| <= margin; small: drifted
    p_holm           the same after Holm; each row of the last axis is a family
    verdict          one of the four words
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


Rows = TypeVar("Rows", Evidence, TestResult)


def element(rows: Rows, index: int) -> Rows:
    """Return the evidence on, or the result of, one number of arrays of one dimension."""
    values = {name: np.asarray(each) for name, each in vars(rows).items()}
    return type(rows)(**{name: each[index] if each.ndim else each for name, each in values.items()})


def standard_error(evidence: Evidence) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return the standard error of D, its df, and the index of ``STANDARD_ERRORS`` used."""
    values = {name: np.asarray(each, float) for name, each in vars(evidence).items()}
    n, v, df = values["ours_n"], values["variance"], values["df"]
    r, r_df = values["reference_variance"], values["reference_df"]
    k, w = values["paired_n"], values["paired_variance"]
    m = np.where(values["reference_n"] >= 1, values["reference_n"], 1.0)
    has_v, has_r = np.isfinite(v) & (df > 0), np.isfinite(r) & (r_df > 0)
    paired = (k >= 1) & np.isfinite(w) & (values["paired_df"] > 0)
    conditions = [paired, has_v & has_r, has_v, has_r]
    with np.errstate(divide="ignore", invalid="ignore"):
        both = 1 / n + 1 / m
        squares = [w / k, v / n + r / m, v * both, r * both]
    dfs = [values["paired_df"], np.minimum(df, r_df), df, r_df]
    case = np.select(conditions, list(range(len(conditions))), UNKNOWN)
    square, df = np.select(conditions, squares, np.nan), np.select(conditions, dfs, np.nan)
    return np.sqrt(square + values["laboratory"]), df, case


def compare(evidence: Evidence, alpha: ArrayLike = ALPHA, planned: int = 0) -> TestResult:
    """Return the test results of each element; ``alpha`` sets the confidence of the interval.

    ``p_drift`` is the tail beyond the observed |D| at the nearer edge of the margin plus that at
    the farther one: the one-sided test for a wide margin, the two-sided test for a margin of zero.
    Without any spread there is no test, unless the runs are identical. ``planned`` is the number of
    tests in the plan, where fewer could be made.
    """
    ours, reference = np.asarray(evidence.ours, float), np.asarray(evidence.reference, float)
    margin, slack = np.asarray(evidence.margin, float), np.asarray(evidence.slack, float)
    se, df, case = standard_error(evidence)
    difference, se, df, case, margin, slack, alpha = np.broadcast_arrays(
        ours - reference, se, df, case, margin, slack, np.asarray(alpha, float)
    )
    se, df = np.where(se > 0, se, np.nan), np.where(se > 0, df, np.nan)
    half = _quantile(1 - alpha, df) * se + slack
    room, size = margin - slack, np.abs(difference)
    p_above, p_below = _tail(room + difference, se, df), _tail(room - difference, se, df)
    p_drift = _tail(size - margin - slack, se, df) + _tail(size + margin + slack, se, df)
    same = np.broadcast_to(np.asarray(evidence.identical, bool), difference.shape)
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


def _tail(distance: Floats, se: Floats, df: Floats) -> Floats:
    """Return P(T * se >= distance)."""
    return np.asarray(special.stdtr(df, -distance / se), float)


def _quantile(probability: Floats, df: Floats) -> Floats:
    """Return Student's t quantile of each element; each distinct pair is inverted once."""
    pairs, index = np.unique(
        np.stack([df.ravel(), probability.ravel()]), axis=1, return_inverse=True
    )
    return np.asarray(special.stdtrit(*pairs), float)[index].reshape(df.shape)
