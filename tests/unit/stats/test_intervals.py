"""Intervals, corrections for many tests and variances that borrow from sister cells, against
independent computations."""

from __future__ import annotations

import numpy as np
import pytest
from error_rates.rule import smyth
from scipy import stats
from statsmodels.stats.multitest import multipletests

from benchmark.stats.intervals import discoveries, holm, spread, t_interval
from benchmark.stats.samples import LIMIT, SHARE, TIMES, moderate


def test_interval_equals_scipy_on_five_values():
    values = np.array([0.61, 0.63, 0.60, 0.66, 0.62])
    found = t_interval(values)
    low, high = stats.t.interval(0.95, 4, loc=values.mean(), scale=stats.sem(values))
    assert found.n == 5
    assert found.mean == pytest.approx(values.mean())
    assert found.sd == pytest.approx(values.std(ddof=1))
    assert found.low == pytest.approx(low)
    assert found.high == pytest.approx(high)


def test_interval_drops_values_that_are_not_finite_and_needs_two():
    assert t_interval([1.0, np.nan, 3.0, np.inf]).n == 2
    found = t_interval([0.5])
    assert found.n == 1
    assert found.mean == 0.5
    assert np.isnan([found.sd, found.low, found.high]).all()


def test_values_that_differ_by_rounding_have_no_spread():
    assert spread(np.array([0.3 - 0.1, 0.2, 0.5 - 0.3])) == 0.0


def test_holm_corrects_each_row_on_its_own():
    p = np.random.default_rng(4).uniform(size=(5, 7)) ** 4
    expected = [multipletests(row, method="holm")[1] for row in p]
    np.testing.assert_allclose(holm(p), expected, rtol=1e-12)


def test_false_discovery_rates_equal_statsmodels():
    p_values = np.random.default_rng(0).random(20) ** 3
    _, expected, *_ = multipletests(p_values, method="fdr_bh")
    np.testing.assert_allclose(discoveries(p_values), expected)


@pytest.mark.parametrize("ours", [holm, discoveries])
def test_a_comparison_without_a_test_stays_out(ours):
    adjusted = ours([0.01, np.nan, 0.04])
    assert np.isnan(adjusted[1])
    np.testing.assert_allclose(adjusted[[0, 2]], ours([0.01, 0.04]))


def test_tests_that_are_planned_and_missing_count():
    # Two of ten planned: as if the other eight were there with p = 1.
    of_ten = holm([0.004, 0.02, *np.ones(8)])
    of_two = holm([0.004, 0.02], planned=10)
    np.testing.assert_allclose(of_two, of_ten[:2])


def test_false_discoveries_of_many_true_claims_are_rare():
    # 42 true sentences: uncorrected, 2 would be contradicted by chance in an average report.
    p_values = np.random.default_rng(0).random((2000, 42))
    uncorrected = (p_values <= 0.05).sum(axis=1).mean()
    corrected = np.array([discoveries(row) for row in p_values])
    with_a_discovery = (corrected <= 0.05).any(axis=1)
    assert uncorrected == pytest.approx(2.1, abs=0.15)
    assert with_a_discovery.mean() < 0.065  # 5% in theory; Monte Carlo error 0.005


def with_equal_sisters(variance):
    """Return the variances of a cell and of 29 sisters."""
    return np.r_[variance, np.ones(29)]


def test_three_degrees_borrow_five_from_many_sisters_of_equal_spread():
    found = moderate(with_equal_sisters(4.0), 3)
    assert found.df[0] == pytest.approx(8.0)
    assert found.variance[0] == pytest.approx((5 * 1.0 + 3 * 4.0) / 8)


@pytest.mark.parametrize(
    ("own", "variance", "lent"),
    [
        (0, np.nan, 2),
        (1, 4.0, 2),
        (2, 4.0, 4),
        (3, 4.0, 5),
    ],
)
def test_few_runs_borrow_at_most_twice_what_they_have(own, variance, lent):
    df = np.r_[own, np.full(29, 4)]
    found = moderate(with_equal_sisters(variance), df)
    assert found.prior_df[0] == lent


def test_a_quarter_of_the_sisters_degrees_of_freedom_is_the_most_that_few_sisters_lend():
    found = moderate([1.0, 1.0, 1.0], 4)
    assert found.prior_df == pytest.approx(SHARE * 8)
    assert found.df == pytest.approx(4 + 2)


def test_a_cell_lives_on_its_own_variance_its_sisters_or_none():
    alone = moderate([2.5], 3)
    assert alone.variance == [2.5]
    assert alone.df == [3.0]
    assert alone.prior_df == [0.0]
    of_one_run = moderate([np.nan, 1.0, 3.0], [0, 2, 4])
    assert of_one_run.variance[0] == pytest.approx((2 * 1.0 + 4 * 3.0) / 6)
    assert of_one_run.df[0] == pytest.approx(SHARE * 6)
    of_none = moderate([np.nan, np.nan], [0, 0])
    assert np.isnan(of_none.variance).all()


def test_sisters_that_differ_lend_less():
    rng = np.random.default_rng(0)
    equal = rng.chisquare(4, 30) / 4
    spreads = np.exp(2 * rng.normal(0, 1.0, 30))
    of_equal = moderate(equal, 4)
    of_differing = moderate(equal * spreads, 4)
    assert of_equal.prior_df[0] == LIMIT
    assert of_differing.prior_df[0] < 1.0


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
    found = moderate(variance, 4)
    assert found.prior_df[0] > 0


def test_equal_runs_get_the_spread_of_their_sisters():
    found = moderate(with_equal_sisters(0.0), 1)
    assert found.variance[0] == pytest.approx(TIMES / (TIMES + 1))


def test_many_tables_at_once_equal_one_after_another():
    rng = np.random.default_rng(1)
    variance = rng.chisquare(3, (5, 12))
    df = rng.integers(1, 6, (5, 12)).astype(float)
    together = moderate(variance, df)
    alone = [moderate(*row) for row in zip(variance, df, strict=True)]
    np.testing.assert_allclose(together.variance, [found.variance for found in alone], rtol=1e-12)
    np.testing.assert_allclose(together.df, [found.df for found in alone], rtol=1e-12)


def test_smyths_estimate_finds_the_prior_of_many_cells():
    # Inverse chi-square with 8 degrees of freedom and scale 2: 20,000 cells leave about 5% error.
    rng = np.random.default_rng(0)
    true = 8 * 2.0 / rng.chisquare(8, 20_000)
    variance = true * rng.chisquare(4, 20_000) / 4
    found = smyth(variance, np.full(20_000, 4.0))
    assert found.prior_df[0] == pytest.approx(8, rel=0.1)
    assert found.prior_variance[0] == pytest.approx(2.0, rel=0.05)
