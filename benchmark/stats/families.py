"""Correction for many tests: Holm over a family of numbers, false discovery rate over claims."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import false_discovery_control

from benchmark.stats.intervals import Floats


def holm(p_values: ArrayLike, planned: int = 0) -> Floats:
    """Return Holm-adjusted p-values in the given order; each row of the last axis is a family.

    NaN stands for a comparison that could not be tested: it stays NaN. ``planned`` is the number of
    tests in the plan: a test that is still missing counts, so that a result cannot be lost when it
    comes in. Written out, because statsmodels' version takes one family at a time.
    """
    p_values = np.asarray(p_values, dtype=float)
    order = np.argsort(p_values, axis=-1, kind="stable")  # NaN last
    rising = np.take_along_axis(p_values, order, axis=-1)
    count = np.maximum(np.isfinite(p_values).sum(axis=-1, keepdims=True), planned)
    left = count - np.arange(p_values.shape[-1])
    stepped = np.minimum(np.maximum.accumulate(rising * left, axis=-1), 1.0)
    adjusted = np.empty_like(p_values)
    np.put_along_axis(adjusted, order, stepped, axis=-1)
    return adjusted


def discoveries(p_values: ArrayLike) -> Floats:
    """Return p-values adjusted for the false discovery rate (Benjamini and Hochberg 1995).

    Those at or below q hold at a false discovery rate of q. NaN stays NaN and does not count.
    """
    p_values = np.asarray(p_values, dtype=float)
    tested = np.isfinite(p_values)
    adjusted = np.full(p_values.shape, np.nan)
    if tested.any():
        adjusted[tested] = false_discovery_control(p_values[tested])
    return adjusted
