"""Intervals of small samples and corrections for many tests, against independent computations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from benchmark.stats.intervals import discoveries, holm, spread, t_interval


def test_interval_equals_scipy_on_five_values():
    values = np.array([0.61, 0.63, 0.60, 0.66, 0.62])
    found = t_interval(values)
    low, high = stats.t.interval(0.95, 4, loc=values.mean(), scale=stats.sem(values))
    assert (found.n, found.mean, found.sd) == (
        5,
        pytest.approx(values.mean()),
        pytest.approx(values.std(ddof=1)),
    )
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_interval_drops_values_that_are_not_finite():
    assert t_interval([1.0, np.nan, 3.0, np.inf]).n == 2


def test_one_value_has_a_mean_and_no_spread():
    found = t_interval([0.5])
    assert (found.n, found.mean) == (1, 0.5)
    assert np.isnan([found.sd, found.low, found.high]).all()


def test_values_that_differ_by_rounding_have_no_spread():
    assert spread(np.array([0.3 - 0.1, 0.2, 0.5 - 0.3])) == 0.0


def test_holm_equals_statsmodels_in_the_given_order():
    p = np.random.default_rng(3).uniform(size=40) ** 3
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1], rtol=1e-12)


def test_holm_corrects_each_row_on_its_own():
    p = np.random.default_rng(4).uniform(size=(5, 7)) ** 4
    np.testing.assert_allclose(
        holm(p), [multipletests(row, method="holm")[1] for row in p], rtol=1e-12
    )


def test_untested_comparisons_do_not_count_in_the_family():
    np.testing.assert_allclose(holm([0.02, np.nan, 0.01]), [0.02, np.nan, 0.02])


@pytest.mark.parametrize("method, ours", [("holm", holm), ("fdr_bh", discoveries)])
def test_adjusted_p_values_equal_statsmodels(method, ours):
    p_values = np.random.default_rng(0).random(20) ** 3
    np.testing.assert_allclose(ours(p_values), multipletests(p_values, method=method)[1])


@pytest.mark.parametrize("ours", [holm, discoveries])
def test_a_comparison_without_a_test_stays_out(ours):
    adjusted = ours([0.01, np.nan, 0.04])
    assert np.isnan(adjusted[1])
    np.testing.assert_allclose(adjusted[[0, 2]], ours([0.01, 0.04]))


def test_tests_that_are_planned_and_missing_count():
    # Two of ten planned: as if the other eight were there with p = 1.
    np.testing.assert_allclose(holm([0.004, 0.02], planned=10), holm([0.004, 0.02] + 8 * [1.0])[:2])


def test_a_verdict_on_an_early_look_is_not_lost_when_the_rest_comes_in():
    early = holm([0.02], planned=3)[0]
    late = holm([0.02, 0.9, 0.8], planned=3)[0]
    assert early == late


def test_false_discoveries_of_many_true_claims_are_rare():
    # 42 true sentences: uncorrected, 2 would be contradicted by chance in an average report.
    p_values = np.random.default_rng(0).random((2000, 42))
    uncorrected = (p_values <= 0.05).sum(axis=1).mean()
    reports = np.mean([(discoveries(row) <= 0.05).any() for row in p_values])
    assert uncorrected == pytest.approx(2.1, abs=0.15)
    assert reports < 0.065  # 5% in theory; Monte Carlo error 0.005
