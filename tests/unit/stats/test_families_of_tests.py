"""Corrections over families, against statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from benchmark.stats.families import discoveries, holm


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
