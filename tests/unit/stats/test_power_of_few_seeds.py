"""Detectable differences at the smallest numbers of seeds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from benchmark.stats.power import detectable_effect, power


@pytest.mark.parametrize("n", [3, 5, 10])
def test_power_equals_the_noncentral_t(n):
    critical, shift = stats.t.ppf(0.975, n - 1), 0.9 * np.sqrt(n)
    expected = stats.nct.sf(critical, n - 1, shift) + stats.nct.cdf(-critical, n - 1, shift)
    assert power(0.9, n) == pytest.approx(expected, rel=1e-7)


def test_two_seeds_need_a_difference_of_many_sd():
    effect = detectable_effect(2)
    assert power(effect, 2) == pytest.approx(0.8, abs=1e-6)
    assert 11 < effect < 12


def test_power_without_an_effect_is_alpha():
    assert power(0.0, 4, 0.05) == pytest.approx(0.05, rel=1e-6)
