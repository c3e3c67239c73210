"""The rule behind every verdict, on arrays: one cell, a table, or a million simulated ones.

D = ours - reference is normal with mean delta. Its standard error counts both sides
(``STANDARD_ERRORS``), with s, n our spread and number of runs, r, m the reference's (m = 1 unless
stated), d the spread of the k differences by seed, and q a spread pooled over sister cells. Where
one spread stands for both sides, the test is an exact t if the two are equal, and an assumption
otherwise. For two spreads, Welch's degrees of freedom are too many for two to five runs: at the
levels that Holm needs, true rates come out up to ten times the nominal ones. min(n, m) - 1 bounds
the error for every ratio of the two spreads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

ALPHA = 0.05
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class StandardError:
    """One way to the standard error: its square, its degrees of freedom, and when it applies."""

    variance: str
    df: str
    reason: str


# In the order in which they are tried.
STANDARD_ERRORS = (
    StandardError(
        "d² / k", "k - 1", "both sides have the same seeds: d is the spread of differences"
    ),
    StandardError(
        "s² / n + r² / m", "min(n, m) - 1", "both sides have a spread and a number of runs"
    ),
    StandardError(
        "s² (1/n + 1/m)", "n - 1", "our spread stands for both: the reference states none"
    ),
    StandardError(
        "q² / n + r² / m", "min(df of q, m - 1)", "our spread q is pooled over sister cells"
    ),
    StandardError(
        "r² (1/n + 1/m)", "m - 1", "the reference's spread stands for both: one run of ours"
    ),
    StandardError("q² (1/n + 1/m)", "df of q", "a spread q pooled over our cells stands for both"),
)
UNKNOWN = -1  # no spread is known


@dataclass(frozen=True)
class Evidence:
    """Arrays of one shape (or scalars), in percentage points; NaN for what is not known.

    A reference without a stated number of runs is one draw. ``slack`` is half a unit of the last
    printed digit: the printed value may be off by that much either way, and the rule grants it to
    both hypotheses.
    """

    ours: ArrayLike
    ours_sd: ArrayLike
    ours_n: ArrayLike
    reference: ArrayLike
    reference_sd: ArrayLike = np.nan
    reference_n: ArrayLike = np.nan
    pooled_sd: ArrayLike = np.nan
    pooled_df: ArrayLike = np.nan
    paired_sd: ArrayLike = np.nan
    paired_n: ArrayLike = np.nan
    margin: ArrayLike = 1.0
    slack: ArrayLike = 0.0


@dataclass(frozen=True)
class TestResult:
    """What the rule computed, in arrays of one shape.

    case             index into ``STANDARD_ERRORS``, or ``UNKNOWN``
    low, high        interval of confidence 1 - 2 alpha, widened by the slack
    above, below     t of the one-sided tests of |delta| >= margin at the lower and upper edge
    p_above, p_below their p-values; ``p_equivalence`` is the larger one
    beyond           t of the distance of |D| beyond the nearer edge
    p_drift          p of |delta| <= margin
    """

    __test__ = False  # not a test of pytest's
    difference: Floats
    se: Floats
    df: Floats
    case: NDArray[np.int64]
    low: Floats
    high: Floats
    above: Floats
    below: Floats
    p_above: Floats
    p_below: Floats
    p_equivalence: Floats
    beyond: Floats
    p_drift: Floats

    def at(self, index: int) -> TestResult:
        """Return the result of one element."""
        return TestResult(**{name: array[index] for name, array in vars(self).items()})


def standard_error(evidence: Evidence) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return the standard error of D, its df, and the index of ``STANDARD_ERRORS`` used."""
    n, s = np.asarray(evidence.ours_n, float), np.asarray(evidence.ours_sd, float)
    m, r = np.asarray(evidence.reference_n, float), np.asarray(evidence.reference_sd, float)
    q, q_df = np.asarray(evidence.pooled_sd, float), np.asarray(evidence.pooled_df, float)
    d, k = np.asarray(evidence.paired_sd, float), np.asarray(evidence.paired_n, float)
    paired = (k >= 2) & np.isfinite(d)
    stated = (m >= 2) & np.isfinite(r)
    m = np.where(np.isfinite(m) & (m >= 1), m, 1.0)
    pooled = (q > 0) & (q_df >= 1)
    # Equal values in every run say little about spread: sister cells say more, where there are any.
    own = (n >= 2) & np.isfinite(s) & ~((s == 0) & ~stated & pooled)
    conditions = [paired, own & stated, own, stated & pooled, stated, pooled]
    both = 1 / n + 1 / m
    variances = [
        d**2 / k,
        s**2 / n + r**2 / m,
        s**2 * both,
        q**2 / n + r**2 / m,
        r**2 * both,
        q**2 * both,
    ]
    dfs = [k - 1, np.minimum(n, m) - 1, n - 1, np.minimum(q_df, m - 1), m - 1, q_df]
    case = np.select(conditions, list(range(len(conditions))), UNKNOWN)
    variance, df = np.select(conditions, variances, np.nan), np.select(conditions, dfs, np.nan)
    return np.sqrt(variance), df, case


def compare(evidence: Evidence, alpha: float = ALPHA) -> TestResult:
    """Return the test results of each element.

    ``p_equivalence`` is at most ``alpha`` when the interval lies inside the margin. ``p_drift`` is
    the tail beyond the observed |D| at the nearer edge of the margin plus that at the farther one:
    the plain one-sided test for a wide margin, the two-sided test for a margin of zero. A standard
    error of zero gives p-values of 0 or 1.
    """
    ours, reference = np.asarray(evidence.ours, float), np.asarray(evidence.reference, float)
    margin, slack = np.asarray(evidence.margin, float), np.asarray(evidence.slack, float)
    se, df, case = standard_error(evidence)
    difference, se, df, case, margin, slack = np.broadcast_arrays(
        ours - reference, se, df, case, margin, slack
    )
    half = np.where(se == 0, 0.0, _quantile(1 - alpha, df) * se) + slack
    room, size = margin - slack, np.abs(difference)
    p_above, p_below = _tail(room + difference, se, df), _tail(room - difference, se, df)
    near, far = size - margin - slack, size + margin + slack
    with np.errstate(divide="ignore", invalid="ignore"):
        above, below, beyond = (room + difference) / se, (room - difference) / se, near / se
    return TestResult(
        difference=difference,
        se=se,
        df=df,
        case=case,
        low=difference - half,
        high=difference + half,
        above=above,
        below=below,
        p_above=p_above,
        p_below=p_below,
        p_equivalence=np.maximum(p_above, p_below),
        beyond=beyond,
        p_drift=np.minimum(_tail(near, se, df) + _tail(far, se, df), 1.0),
    )


def _tail(distance: Floats, se: Floats, df: Floats) -> Floats:
    """Return P(T * se >= distance); without spread 0 for a positive distance, else 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = np.asarray(special.stdtr(df, -distance / se), float)
    return np.where(se == 0, np.where(distance > 0, 0.0, 1.0), tail)


def _quantile(probability: float, df: Floats) -> Floats:
    """Return Student's t quantile for each element; each distinct ``df`` is inverted once."""
    values, index = np.unique(df, return_inverse=True)
    return np.asarray(special.stdtrit(values, probability), float)[index].reshape(df.shape)


def seeds_to_decide(
    difference: float,
    spread: float,
    reference_sd: float,
    reference_n: float,
    *,
    now: int,
    margin: float,
    slack: float = 0.0,
    family: int = 1,
    paired: bool = False,
    alpha: float = ALPHA,
    most: int = 1000,
) -> float:
    """Return the least number of our runs above ``now`` that decides if D and spread stay.

    ``paired``: ``spread`` is that of differences by seed, and the reference gets as many runs. A
    drift is counted only at the strictest level of Holm, alpha / family. NaN when even ``most``
    runs would not do: then the reference side alone, often a single run, is too uncertain.
    """
    n = np.arange(max(now + 1, 2), most + 1)
    if not np.isfinite(spread) or not len(n):
        return float("nan")
    ours, zero = np.full(len(n), difference), np.zeros(len(n))
    if paired:
        evidence = Evidence(
            ours, spread, n, zero, paired_sd=spread, paired_n=n, margin=margin, slack=slack
        )
    else:
        evidence = Evidence(
            ours, spread, n, zero, reference_sd, reference_n, margin=margin, slack=slack
        )
    result = compare(evidence)
    decided = (result.p_equivalence <= alpha) | (result.p_drift <= alpha / max(family, 1))
    return float(n[decided.argmax()]) if decided.any() else float("nan")
