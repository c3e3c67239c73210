"""Variances that borrow from sister cells, as two to five runs say little of their own spread.

Sister cells are the losses and batch sizes of one dataset, setting, split and metric. Each variance
s^2 with d degrees of freedom is averaged with s0^2, the pooled variance of its sisters (Smyth 2004,
equation 6):

    v = (d0 s0^2 + d s^2) / (d0 + d)    with d0 + d degrees of freedom.

d0 says how far to trust the sisters. With few runs it cannot be estimated well, and too large a
value causes false drifts wherever cells really differ. So d0 is the smallest of four numbers,
chosen by simulation (``docs/statistics.md``):

- ``LIMIT``;
- ``TIMES`` the cell's own degrees of freedom (those of two runs for a single one): two runs cannot
  show that their cell is unlike its sisters;
- ``SHARE`` of the sisters' degrees of freedom: few sisters cannot show that they differ;
- 2 / CV^2, where CV is the coefficient of variation of the true variances, estimated by moments:
  sisters that visibly differ teach little.

Sometimes a few cells have a much larger spread and all the others agree, as when one loss is
unstable. Cells that Cochran's outlier test (ISO 5725-2, in 't Lam's leave-one-out form of 2010)
separates are then judged on their own spread and teach their sisters nothing; if the others still
differ, no cell is set aside.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

LIMIT = 5.0
TIMES = 2.0
SHARE = 0.25
OUTLIER = 0.001  # level of Cochran's test over all cells


@dataclass(frozen=True)
class Moderated:
    """Moderated variances, their degrees of freedom, and what they borrowed, of one shape.

    ``variance`` is NaN where neither the cell nor its sisters have one; ``prior_df`` is 0 where
    nothing is borrowed.
    """

    variance: np.ndarray
    df: np.ndarray
    prior_variance: np.ndarray
    prior_df: np.ndarray


def moderate(
    variance: ArrayLike,
    df: ArrayLike,
    *,
    limit: float = LIMIT,
    times: float = TIMES,
    share: float = SHARE,
    outlier: float = OUTLIER,
) -> Moderated:
    """Return the moderated variances of sister cells, which lie along the last axis.

    A cell without a variance of its own (one run) has ``df`` 0 or a NaN variance; it gets its
    sisters' pooled variance. ``limit`` 0 gives every cell its own variance, as the plain t test
    does.
    """
    variance, df = np.broadcast_arrays(np.asarray(variance, float), np.asarray(df, float))
    own = np.isfinite(variance) & (df > 0)
    variance, df = np.where(own, variance, 0.0), np.where(own, df, 0.0)
    alike = _alike(variance, df, own)
    some = _without_outliers(variance, df, own, outlier)
    alike_without = _alike(variance, df, some)
    drop = (some != own).any(axis=-1, keepdims=True) & (alike_without >= limit)
    lenders = np.where(drop, some, own)
    alike = np.where(drop, alike_without, alike)

    prior_variance, sisters_df = _pooled_over_others(variance, df, lenders)
    most = np.minimum(limit, times * np.maximum(df, 1.0))
    prior_df = np.minimum(np.minimum(most, alike), share * sisters_df)
    prior_df = np.where(own & ~lenders, 0.0, prior_df)
    total = prior_df + df
    with np.errstate(invalid="ignore", divide="ignore"):
        borrowed = np.where(prior_df > 0, prior_df * prior_variance, 0.0)
        moderated = (borrowed + df * variance) / total
    return Moderated(moderated, total, prior_variance, prior_df)


def _alike(variance: np.ndarray, df: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Return 2 / CV^2 of the true variances of ``cells``, by moments; infinite if they look equal.

    For equal degrees of freedom d, E (s^2 / mean - 1)^2 is (2 / d) (1 + CV^2) + CV^2.
    """
    weight = np.where(cells, df, 0.0)
    total = weight.sum(axis=-1, keepdims=True)
    count = cells.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (weight * variance).sum(axis=-1, keepdims=True) / total
        squares = (weight * (variance / mean - 1) ** 2).sum(axis=-1, keepdims=True)
        cv2 = (squares * count / (count - 1) - 2 * count) / (2 * count + total)
        return np.where(cv2 > 0, 2 / cv2, np.inf)


def _without_outliers(
    variance: np.ndarray, df: np.ndarray, own: np.ndarray, level: float
) -> np.ndarray:
    """Return ``own`` without the cells whose variance is an outlier, taken out one by one."""
    cells = own
    while True:
        pooled, rest_df = _pooled_over_others(variance, df, cells)
        count = cells.sum(axis=-1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            p = np.where(cells, special.fdtrc(df, rest_df, variance / pooled), 1.0)
        lowest = p == p.min(axis=-1, keepdims=True)
        out = cells & lowest & (p < level / np.maximum(count, 1)) & (count > 2)
        if not out.any():
            return cells
        cells = cells & ~out


def _pooled_over_others(
    variance: np.ndarray, df: np.ndarray, cells: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each cell, the pooled variance of the other ``cells`` (or NaN) and its df."""
    weight = np.where(cells, df, 0.0)
    squares = weight * variance
    rest_df = weight.sum(axis=-1, keepdims=True) - weight
    with np.errstate(invalid="ignore", divide="ignore"):
        # Sums of others by difference may fall below zero by rounding.
        pooled = np.maximum(squares.sum(axis=-1, keepdims=True) - squares, 0.0) / rest_df
    return np.where(rest_df > 0, pooled, np.nan), rest_df
