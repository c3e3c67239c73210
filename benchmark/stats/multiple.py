"""Correction for many comparisons: Holm's step-down procedure over a named family."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike


def holm(p_values: ArrayLike) -> np.ndarray:
    """Return Holm-adjusted p-values in the given order; each row of the last axis is a family.

    NaN stands for a comparison that could not be tested: it stays NaN and does not count in the
    family. Written out because statsmodels' version, which the tests compare it with, collects
    garbage on every call and takes a tenth of a second; the simulation of the verdicts corrects
    thousands of families.
    """
    p_values = np.asarray(p_values, dtype=float)
    order = np.argsort(p_values, axis=-1, kind="stable")  # NaN last
    rising = np.take_along_axis(p_values, order, axis=-1)
    left = np.isfinite(p_values).sum(axis=-1, keepdims=True) - np.arange(p_values.shape[-1])
    stepped = np.minimum(np.maximum.accumulate(rising * left, axis=-1), 1.0)
    adjusted = np.empty_like(p_values)
    np.put_along_axis(adjusted, order, stepped, axis=-1)
    return adjusted


def holm_by_family(
    table: pd.DataFrame, p: str = "p", family: str = "family"
) -> tuple[pd.Series, pd.Series]:
    """Return adjusted p-values and the size of each row's family, both aligned with ``table``."""
    groups = table.groupby(family, sort=False)[p]
    return groups.transform(lambda column: holm(column.to_numpy())), groups.transform("count")
