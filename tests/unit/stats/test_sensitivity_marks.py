"""Does a verdict stand? Each mark against a calculation by hand, and where it does not apply."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from benchmark.stats.reproduction import DRIFTED, REPRODUCED, Evidence, compare
from benchmark.stats.sensitivity import (
    BEST,
    LABORATORY,
    MARKS,
    MEAN_OF_BEST,
    SPREAD,
    TAILS,
    VARIANCE_OF_BEST,
    applies,
    marks,
)

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
