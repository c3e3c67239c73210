"""Variances that borrow from sister cells: exact values, limits, outliers, cells of their own."""

from __future__ import annotations

import numpy as np
import pytest
from error_rates.rule import smyth

from benchmark.stats.samples import LIMIT, SHARE, TIMES, moderate


def test_three_degrees_borrow_five_from_many_sisters_of_equal_spread():
    variance = np.r_[4.0, np.full(29, 1.0)]
    found = moderate(variance, 3)
    assert found.df[0] == pytest.approx(8.0)
    assert found.variance[0] == pytest.approx((5 * 1.0 + 3 * 4.0) / 8)


@pytest.mark.parametrize("own, lent", [(0, 2), (1, 2), (2, 4), (3, 5)])
def test_few_runs_borrow_at_most_twice_what_they_have(own, lent):
    df = np.r_[own, np.full(29, 4)]
    assert moderate(np.r_[4.0 if own else np.nan, np.ones(29)], df).prior_df[0] == lent


def test_a_quarter_of_the_sisters_degrees_of_freedom_is_the_most_that_few_sisters_lend():
    found = moderate([1.0, 1.0, 1.0], 4)
    assert found.prior_df == pytest.approx(SHARE * 8)
    assert found.df == pytest.approx(4 + 2)


def test_an_only_cell_keeps_its_own_variance():
    found = moderate([2.5], 3)
    assert (found.variance[0], found.df[0], found.prior_df[0]) == (2.5, 3.0, 0.0)


def test_a_single_run_takes_the_pooled_variance_of_its_sisters():
    found = moderate([np.nan, 1.0, 3.0], [0, 2, 4])
    assert found.variance[0] == pytest.approx((2 * 1.0 + 4 * 3.0) / 6)
    assert found.df[0] == pytest.approx(SHARE * 6)


def test_cells_without_any_variance_have_none():
    found = moderate([np.nan, np.nan], [0, 0])
    assert np.isnan(found.variance).all()


def test_sisters_that_differ_lend_less():
    rng = np.random.default_rng(0)
    equal = rng.chisquare(4, 30) / 4
    spreads = np.exp(2 * rng.normal(0, 1.0, 30))
    assert moderate(equal, 4).prior_df[0] == LIMIT
    assert moderate(equal * spreads, 4).prior_df[0] < 1.0


def test_one_unstable_cell_is_set_aside_and_does_not_blow_up_its_sisters():
    rng = np.random.default_rng(0)
    variance = rng.chisquare(4, 30) / 4
    variance[7] = 100.0
    found = moderate(variance, 4)
    others = np.delete(np.arange(30), 7)
    assert found.prior_df[7] == 0
    assert found.variance[7] == 100.0
    assert (found.prior_df[others] == LIMIT).all()
    assert found.prior_variance[others].max() < 2.0


def test_no_cell_is_set_aside_where_the_others_differ_as_well():
    variance = np.r_[100.0, np.geomspace(0.01, 10.0, 29)]
    assert moderate(variance, 4).prior_df[0] > 0


def test_equal_runs_get_the_spread_of_their_sisters():
    found = moderate(np.r_[0.0, np.ones(29)], 1)
    assert found.variance[0] == pytest.approx(TIMES / (TIMES + 1))


def test_many_tables_at_once_equal_one_after_another():
    rng = np.random.default_rng(1)
    variance, df = rng.chisquare(3, (5, 12)), rng.integers(1, 6, (5, 12)).astype(float)
    together = moderate(variance, df)
    for row in range(5):
        alone = moderate(variance[row], df[row])
        np.testing.assert_allclose(alone.variance, together.variance[row], rtol=1e-12)
        np.testing.assert_allclose(alone.df, together.df[row], rtol=1e-12)


def test_smyths_estimate_finds_the_prior_of_many_cells():
    # Inverse chi-square with 8 degrees of freedom and scale 2: 20,000 cells leave about 5% error.
    rng = np.random.default_rng(0)
    true = 8 * 2.0 / rng.chisquare(8, 20_000)
    found = smyth(true * rng.chisquare(4, 20_000) / 4, np.full(20_000, 4.0))
    assert found.prior_df[0] == pytest.approx(8, rel=0.1)
    assert found.prior_variance[0] == pytest.approx(2.0, rel=0.05)
