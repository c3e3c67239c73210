"""The papers' small examples, against figures worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.analyses.gap import gap, mean_ap, plain_bound
from benchmark.analyses.worked_examples import (
    BATCHES,
    calibration,
    delta,
    quantised,
    slope,
    violations,
)


def test_the_toy_batches_are_perfect_and_reach_the_bound_of_eq_8():
    assert mean_ap(BATCHES) == 1
    whole = (1 + 1 + 3 / 5 + 4 / 6) / 4
    assert gap(BATCHES) == pytest.approx(1 - whole) == plain_bound(BATCHES)
    assert calibration(BATCHES[0]) == pytest.approx(0.175)
    assert calibration(BATCHES[1]) == pytest.approx(0.325)


def test_delta_is_where_the_sigmoid_lacks_epsilon():
    assert delta(0.01, 0.01) == pytest.approx(0.04595, abs=1e-5)
    at = np.array([delta(0.01, 0.01)])
    assert 1 / (1 + np.exp(-at / 0.01)) == pytest.approx(0.99)
    step = 1e-7
    rise = np.subtract(*(1 / (1 + np.exp(-(at + side) / 0.01)) for side in (step, -step)))
    assert slope(at, 0.01) == pytest.approx(rise / (2 * step), rel=1e-5)


def test_the_violating_terms_are_the_six_that_smooth_ap_lists():
    gains = violations()
    assert [*gains] == ["s4 - s1", "s4 - s2", "s4 - s3", "s5 - s3", "s6 - s3", "s7 - s3"]
    before = (1 + 2 / 3 + 3 / 4 + 4 / 8) / 4
    assert gains["s4 - s1"] == pytest.approx((1 + 1 + 3 / 4 + 4 / 8) / 4 - before)
    assert gains["s7 - s3"] == pytest.approx((1 + 2 / 3 + 3 / 4 + 4 / 7) / 4 - before)


def test_fine_bins_are_satisfied_with_a_small_margin_and_coarse_bins_are_not():
    found = quantised().set_index("bins")
    assert found.loc[10, "loss"] > 0.01 and found.loc[10, "gradient"] > 0.01
    assert found.loc[80, "loss"] == pytest.approx(0, abs=1e-9)
    assert found.loc[80, "gradient"] == pytest.approx(0, abs=1e-9)
