"""Correction for many comparisons: Holm's step-down procedure over a named family."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from statsmodels.stats.multitest import multipletests


def holm(p_values: ArrayLike) -> np.ndarray:
    """Returns Holm-adjusted p-values in the given order.

    NaN stands for a comparison that could not be tested: it stays NaN and does not count in the family.
    """
    p_values = np.asarray(p_values, dtype=float)
    adjusted = np.full(p_values.shape, np.nan)
    tested = np.isfinite(p_values)
    if tested.any():
        adjusted[tested] = multipletests(p_values[tested], method="holm")[1]
    return adjusted


def holm_by_family(table: pd.DataFrame, p: str = "p", family: str = "family") -> tuple[pd.Series, pd.Series]:
    """Returns adjusted p-values and the size of each row's family, both aligned with ``table``."""
    groups = table.groupby(family, sort=False)[p]
    return groups.transform(lambda column: holm(column.to_numpy())), groups.transform("count")
