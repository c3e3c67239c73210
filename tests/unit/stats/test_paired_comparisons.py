"""Paired tests by seed: equality with scipy and the cases in which no test is possible."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmark.stats.paired import against_default, paired_tests
from benchmark.stats.power import detectable_effect


def by_seed(values, seeds=None):
    return pd.Series(values, index=range(len(values)) if seeds is None else seeds, dtype=float)


def paired(first: pd.Series, second: pd.Series):
    """Returns the test of two losses' scores indexed by seed, beside another pair that must not
    matter."""
    table = pd.DataFrame({"first": first, "second": second, "other": 0.5}).T.to_numpy()
    return paired_tests(table[[2, 0]], table[[1, 1]]).iloc[1]


def test_paired_test_equals_scipy_and_reports_effect_and_detectable_difference():
    a, b = by_seed([0.62, 0.64, 0.63, 0.66, 0.65]), by_seed([0.61, 0.61, 0.62, 0.63, 0.64])
    found, expected = paired(a, b), stats.ttest_rel(a, b)
    assert (found.t, found.p) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue))
    low, high = expected.confidence_interval(0.95)
    assert (found.ci_low, found.ci_high) == (pytest.approx(low), pytest.approx(high))
    sd = (a - b).std(ddof=1)
    assert found.d_z == pytest.approx((a - b).mean() / sd)
    assert found.detectable == pytest.approx(detectable_effect(5) * sd)


def test_only_common_seeds_are_compared_and_the_note_says_so():
    found = paired(by_seed([0.5, 0.6, 0.9], [0, 1, 2]), by_seed([0.4, 0.45, 0.1], [0, 1, 7]))
    assert found.n == 2
    assert found.difference == pytest.approx(0.125)
    assert found.note == "2 common seeds of 3 and 3"


def test_values_that_are_not_finite_are_not_paired():
    assert paired(by_seed([0.5, np.nan, 0.7]), by_seed([0.4, 0.5, 0.6])).n == 2


def test_one_pair_gives_a_difference_and_no_test():
    found = paired(by_seed([0.5]), by_seed([0.4]))
    assert found.difference == pytest.approx(0.1)
    assert np.isnan(found.p) and found.note == "one pair, no test"


def test_no_common_seed_gives_no_number():
    found = paired(by_seed([0.5], [1]), by_seed([0.4], [2]))
    assert found.n == 0 and np.isnan(found.difference) and "no common seed" in found.note


@pytest.mark.parametrize(
    ("shift", "word"), [(0.0, "identical runs"), (0.1, "the same difference at every seed")]
)
def test_differences_without_spread_give_no_p_value(shift, word):
    a = by_seed([0.51, 0.62, 0.73])
    found = paired(a + shift, a)
    assert found.difference == pytest.approx(shift)
    assert np.isnan([found.t, found.p, found.d_z]).all() and word in found.note


def test_tests_at_once_equal_tests_alone():
    rng = np.random.default_rng(1)
    first, second = rng.normal(0.5, 0.1, (2, 40, 5))
    first[rng.random(first.shape) < 0.2] = np.nan
    together = paired_tests(first, second)
    alone = pd.concat(
        [paired_tests(a[None], b[None]) for a, b in zip(first, second, strict=True)],
        ignore_index=True,
    )
    pd.testing.assert_frame_equal(together, alone, rtol=1e-12)


def test_detectable_difference_is_seen_in_four_of_five_simulated_studies():
    rng = np.random.default_rng(5)
    n, sd = 5, 0.02
    differences = rng.normal(detectable_effect(n) * sd, sd, (20_000, n))
    rate = (stats.ttest_1samp(differences, 0, axis=1).pvalue <= 0.05).mean()
    assert rate == pytest.approx(0.8, abs=0.012)  # four Monte Carlo standard errors


def test_values_of_a_sweep_are_tested_against_its_default_and_corrected_together():
    default = {0: 0.50, 1: 0.52, 2: 0.51}
    others = [{seed: value + shift for seed, value in default.items()} for shift in (0.03, 0.1)]
    others[0][0] += 0.004
    others[1][1] += 0.002
    tests = against_default([default, *others], default)
    assert tests.loc[0, ["p", "difference", "p_holm"]].isna().all()
    assert not tests.loc[0, "significant"] and tests["significant"].tolist()[1:] == [True, True]
    assert tests["p_holm"].tolist()[1:] == pytest.approx(
        [max(tests["p"][1], 2 * tests["p"][2]), 2 * tests["p"][2]]
    )


def test_without_a_default_nothing_of_a_sweep_is_tested():
    tests = against_default([{0: 0.5, 1: 0.6}], {})
    assert np.isnan(tests["p_holm"][0]) and "no common seed" in tests["note"][0]
