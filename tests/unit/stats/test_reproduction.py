"""The tests behind verdicts and the marks of sensitivity: against scipy, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from benchmark.stats.reproduction import (
    BEST,
    DRIFTED,
    LABORATORY,
    MARKS,
    MEAN_OF_BEST,
    REPRODUCED,
    SPREAD,
    TAILS,
    UNDECIDED,
    UNKNOWN,
    UNTESTED,
    VARIANCE_OF_BEST,
    Evidence,
    applies,
    compare,
    marks,
)


def test_against_a_known_value_both_tests_equal_scipys():
    scores = np.array([61.2, 61.9, 62.3, 61.4])
    found = compare(
        Evidence(scores.mean(), 4, 62.4, scores.var(ddof=1), 3, reference_n=np.inf, margin=1.0)
    )
    above = stats.ttest_1samp(scores, 61.4, alternative="greater").pvalue
    below = stats.ttest_1samp(scores, 63.4, alternative="less").pvalue
    assert found.p_above == pytest.approx(above)
    assert found.p_below == pytest.approx(below)
    assert found.p_equivalence == pytest.approx(max(above, below))


def test_a_margin_of_zero_gives_the_two_sided_test():
    scores = np.array([61.2, 61.9, 62.3, 61.4])
    found = compare(
        Evidence(scores.mean(), 4, 62.4, scores.var(ddof=1), 3, reference_n=np.inf, margin=0.0)
    )
    assert found.p_drift == pytest.approx(stats.ttest_1samp(scores, 62.4).pvalue)


def test_one_printed_value_counts_as_one_draw_with_our_variance():
    found = compare(Evidence(61.8, 5, 62.5, 0.16, 4))
    assert found.se == pytest.approx(0.4 * np.sqrt(1 / 5 + 1))
    half = stats.t.ppf(0.95, 4) * found.se
    assert (found.low, found.high) == (pytest.approx(-0.7 - half), pytest.approx(-0.7 + half))


def test_two_variances_have_the_smaller_degrees_of_freedom():
    found = compare(
        Evidence(0.0, 3, 0.0, 1.0, 7, reference_n=5, reference_variance=2.0, reference_df=4)
    )
    assert (found.se, found.df) == (pytest.approx(np.sqrt(1 / 3 + 2 / 5)), 4)


def test_paired_differences_go_before_all_else():
    found = compare(Evidence(1.0, 3, 0.0, 9.0, 2, paired_n=3, paired_variance=0.3, paired_df=6))
    assert (found.case, found.se, found.df) == (0, pytest.approx(np.sqrt(0.1)), 6)


def test_rounding_widens_both_hypotheses():
    plain, rounded = (compare(Evidence(2.0, 3, 0.0, 0.25, 7, slack=slack)) for slack in (0.0, 0.05))
    assert rounded.low == pytest.approx(plain.low - 0.05)
    assert rounded.p_equivalence > plain.p_equivalence
    assert rounded.p_drift > plain.p_drift


def test_equal_differences_that_are_not_zero_are_no_exact_value():
    # Frozen 70.0 and 71.0, now 68.5 and 69.5: the same difference twice, and no spread to test by.
    found = compare(Evidence(-1.5, 2, 0.0, paired_n=2, paired_variance=0.0, paired_df=1))
    assert np.isnan([found.p_drift, found.p_equivalence]).all()
    assert found.verdict == UNTESTED


def test_equal_differences_are_tested_by_the_spread_of_their_sisters():
    found = compare(Evidence([-1.5], 2, 0.0, paired_n=2, paired_variance=0.8, paired_df=6))
    assert found.verdict == [UNDECIDED]


def test_identical_bits_are_reproduced():
    found = compare(
        Evidence([0.0], 2, 0.0, paired_n=2, paired_variance=0.0, paired_df=1, identical=True)
    )
    assert found.verdict == [REPRODUCED]


def test_no_variance_on_either_side_gives_no_test():
    found = compare(Evidence(62.4, 1, 65.9))
    assert found.case == UNKNOWN
    assert np.isnan(found.p_drift)


def test_a_planned_family_is_corrected_for_whole_from_the_first_number_on():
    early = Evidence([3.0], 3, 0.0, 0.09, 7)
    assert compare(early, planned=1).verdict == [DRIFTED]
    assert compare(early, planned=3000).verdict == [UNDECIDED]


def test_each_row_is_a_family_of_its_own():
    drifting = np.array([3.1, 0.0, 0.0])
    table = compare(Evidence(np.stack([drifting, drifting]), 3, 0.0, 0.09, 7))
    assert (table.verdict == compare(Evidence(drifting, 3, 0.0, 0.09, 7)).verdict).all()


ONE_VALUE = Evidence([62.4], 3, 65.9, 0.09, 7)


def test_every_mark_is_given():
    assert list(marks(ONE_VALUE)) == list(MARKS)


def test_the_mean_and_variance_of_the_best_of_three_are_those_of_draws():
    best = np.random.default_rng(0).standard_normal((400_000, 3)).max(axis=1)
    assert best.mean() == pytest.approx(MEAN_OF_BEST, abs=0.005)
    assert best.var() == pytest.approx(VARIANCE_OF_BEST, abs=0.005)


def test_a_published_spread_twice_as_large_counts_four_times():
    found = marks(ONE_VALUE)[SPREAD]
    assert found.se == pytest.approx(0.3 * np.sqrt(1 / 3 + 4))


def test_a_best_of_three_is_taken_off_the_published_value():
    found = marks(ONE_VALUE)[BEST]
    assert found.difference == pytest.approx(-3.5 + 0.3 * MEAN_OF_BEST)
    assert found.se == pytest.approx(0.3 * np.sqrt(1 / 3 + VARIANCE_OF_BEST))


def test_heavy_tails_take_a_smaller_number_of_degrees_of_freedom():
    found = marks(ONE_VALUE)[TAILS]
    assert found.df == 4
    se = 0.3 * np.sqrt(1 / 3 + 1)
    assert found.p_drift == pytest.approx(stats.t.sf([2.5 / se, 4.5 / se], 4).sum())


def test_laboratories_that_differ_add_their_variance():
    found = marks(ONE_VALUE)[LABORATORY]
    assert found.se == pytest.approx(np.sqrt(0.12 + 0.25))


def test_a_verdict_that_turns_is_marked():
    evidence = Evidence([62.4, 70.0], 3, [65.9, 70.1], 0.04, 7)
    verdict = compare(evidence).verdict
    assert verdict.tolist() == [DRIFTED, REPRODUCED]
    assert (marks(evidence)[BEST].verdict == verdict).tolist() == [True, True]
    assert (marks(evidence)[LABORATORY].verdict == verdict).tolist() == [True, False]


def test_questions_about_other_laboratories_are_not_asked_of_our_own_frozen_runs():
    evidence = Evidence([-1.4], 3, 0.0, paired_n=3, paired_variance=0.01, paired_df=7)
    found = marks(evidence, published=False)
    asked = applies(evidence.reference_n, published=False)
    assert [asked[name].item() for name in MARKS] == [False, False, True, False]
    assert found[LABORATORY].verdict == compare(evidence).verdict


def test_a_mean_of_several_runs_is_no_best_run():
    stated = Evidence(
        [62.4], 3, 65.9, 0.09, 7, reference_n=5, reference_variance=0.1, reference_df=4
    )
    assert not applies(stated.reference_n)[BEST].item()
    assert marks(stated)[SPREAD].se == pytest.approx(np.sqrt(0.03 + 0.4 / 5))
