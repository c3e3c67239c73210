"""The tests behind verdicts and the marks of sensitivity: against scipy, and by hand."""

from __future__ import annotations

from dataclasses import replace

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
    tipping_points,
)


def test_against_a_known_value_both_tests_equal_scipys():
    scores = np.array([61.2, 61.9, 62.3, 61.4])
    known = Evidence(scores.mean(), 4, 62.4, scores.var(ddof=1), 3, reference_n=np.inf)
    found = compare(known)
    exact = compare(replace(known, margin=0.0))
    above = stats.ttest_1samp(scores, 61.4, alternative="greater").pvalue
    below = stats.ttest_1samp(scores, 63.4, alternative="less").pvalue
    assert found.p_above == pytest.approx(above)
    assert found.p_below == pytest.approx(below)
    assert found.p_equivalence == pytest.approx(max(above, below))
    two_sided = stats.ttest_1samp(scores, 62.4)
    assert exact.p_drift == pytest.approx(two_sided.pvalue)


def test_one_printed_value_counts_as_one_draw_with_our_variance():
    found = compare(Evidence(61.8, 5, 62.5, 0.16, 4))
    assert found.se == pytest.approx(0.4 * np.sqrt(1 / 5 + 1))
    half = stats.t.ppf(0.95, 4) * found.se
    assert found.low == pytest.approx(-0.7 - half)
    assert found.high == pytest.approx(-0.7 + half)


def test_two_variances_have_the_smaller_degrees_of_freedom():
    theirs = {"reference_n": 5, "reference_variance": 2.0, "reference_df": 4}
    found = compare(Evidence(0.0, 3, 0.0, 1.0, 7, **theirs))
    assert found.se == pytest.approx(np.sqrt(1 / 3 + 2 / 5))
    assert found.df == 4


def test_paired_differences_go_before_all_else():
    found = compare(Evidence(1.0, 3, 0.0, 9.0, 2, paired_n=3, paired_variance=0.3, paired_df=6))
    assert found.case == 0
    assert found.se == pytest.approx(np.sqrt(0.1))
    assert found.df == 6


def test_rounding_widens_both_hypotheses():
    plain = compare(Evidence(2.0, 3, 0.0, 0.25, 7))
    rounded = compare(Evidence(2.0, 3, 0.0, 0.25, 7, slack=0.05))
    assert rounded.low == pytest.approx(plain.low - 0.05)
    assert rounded.p_equivalence > plain.p_equivalence
    assert rounded.p_drift > plain.p_drift


def test_equal_differences_are_no_exact_value():
    # Frozen 70.0 and 71.0, now 68.5 and 69.5: the same difference twice, and no spread to test by.
    twice = Evidence([-1.5], 2, 0.0, paired_n=2, paired_variance=0.0, paired_df=1)
    found = compare(twice)
    assert np.isnan(found.p_drift)
    assert np.isnan(found.p_equivalence)
    assert found.verdict == [UNTESTED]
    of_sisters = replace(twice, paired_variance=0.8, paired_df=6)
    assert compare(of_sisters).verdict == [UNDECIDED]
    identical = replace(twice, ours=[0.0], identical=True)
    assert compare(identical).verdict == [REPRODUCED]


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
    alone = compare(Evidence(drifting, 3, 0.0, 0.09, 7))
    twice = compare(Evidence(np.stack([drifting, drifting]), 3, 0.0, 0.09, 7))
    assert (twice.verdict == alone.verdict).all()


ONE_VALUE = Evidence([62.4], 3, 65.9, 0.09, 7)


def test_the_mean_and_variance_of_the_best_of_three_are_those_of_draws():
    best = np.random.default_rng(0).standard_normal((400_000, 3)).max(axis=1)
    assert best.mean() == pytest.approx(MEAN_OF_BEST, abs=0.005)
    assert best.var() == pytest.approx(VARIANCE_OF_BEST, abs=0.005)


# of one run; from the edges of the margin to 3.5
VARIANCE = 0.09
NEAR = 2.5
FAR = 4.5
SQUARES = {
    SPREAD: VARIANCE * (1 / 3 + 4),
    BEST: VARIANCE * (1 / 3 + VARIANCE_OF_BEST),
    TAILS: VARIANCE * (1 / 3 + 1),
    LABORATORY: VARIANCE * (1 / 3 + 1) + 0.25,
}


@pytest.mark.parametrize("name", MARKS)
def test_each_world_has_its_own_standard_error(name):
    found = marks(ONE_VALUE)[name]
    assert found.se == pytest.approx(np.sqrt(SQUARES[name]))
    shift = 0.3 * MEAN_OF_BEST if name == BEST else 0.0
    assert found.difference == pytest.approx(-3.5 + shift)
    if name == TAILS:
        ends = np.array([NEAR, FAR]) / found.se
        assert found.df == 4
        assert found.p_drift == pytest.approx(stats.t.sf(ends, 4).sum())


def test_a_verdict_that_turns_is_marked():
    evidence = Evidence([62.4, 70.0], 3, [65.9, 70.1], 0.04, 7)
    verdict = compare(evidence).verdict
    assert verdict.tolist() == [DRIFTED, REPRODUCED]
    marked = marks(evidence)
    assert marked[BEST].verdict.tolist() == [DRIFTED, REPRODUCED]
    assert marked[LABORATORY].verdict[0] == DRIFTED
    assert marked[LABORATORY].verdict[1] != REPRODUCED


def test_questions_about_other_laboratories_are_not_asked_of_our_own_frozen_runs():
    evidence = Evidence([-1.4], 3, 0.0, paired_n=3, paired_variance=0.01, paired_df=7)
    found = marks(evidence, published=False)
    asked = applies(evidence.reference_n, published=False)
    assert [asked[name].item() for name in MARKS] == [False, False, False, True]
    assert found[LABORATORY].verdict == compare(evidence).verdict


def test_a_mean_of_several_runs_is_no_best_run():
    theirs = {"reference_n": 5, "reference_variance": 0.1, "reference_df": 4}
    stated = Evidence([62.4], 3, 65.9, 0.09, 7, **theirs)
    assert not applies(stated.reference_n)[BEST].item()
    assert marks(stated)[SPREAD].se == pytest.approx(np.sqrt(0.03 + 0.4 / 5))


def test_an_assumed_variance_adds_no_uncertainty_of_its_own():
    # Satterthwaite: (v + t)^2 / (v^2 / df), where v is estimated and t is known
    found = marks(ONE_VALUE)[LABORATORY]
    assert found.df == pytest.approx(7 * (0.37 / 0.12) ** 2)


def drawn_tables(seed, tables=400):
    """Return tables of 12 random numbers as evidence, and the planned size of their families."""
    rng = np.random.default_rng(seed)
    shape = (tables, 12)
    stated = rng.random(shape) < 0.5
    own = rng.random(shape) < 0.8
    evidence = Evidence(
        ours=rng.normal(0.0, 3.0, shape),
        ours_n=rng.integers(1, 6, shape),
        reference=rng.normal(0.0, 1.0, shape),
        variance=np.where(own, 10 ** rng.uniform(-4, 1, shape), np.nan),
        df=np.where(own, rng.choice([1.0, 2.0, 7.0, np.inf], shape), np.nan),
        reference_n=rng.choice([np.nan, 1.0, 3.0, 5.0], shape),
        reference_variance=np.where(stated, 10 ** rng.uniform(-4, 1, shape), np.nan),
        reference_df=np.where(stated, rng.integers(1, 5, shape), np.nan),
        margin=rng.choice([0.0, 0.5, 1.0], shape),
        slack=rng.choice([0.0, 0.05], shape),
    )
    return evidence, int(rng.integers(0, 60))


ONLY_UNCERTAIN = [name for name in MARKS if name != BEST]  # BEST moves the reference, too


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ONLY_UNCERTAIN)
def test_an_assumption_that_only_adds_uncertainty_decides_nothing(name, seed):
    evidence, planned = drawn_tables(seed)
    plain = compare(evidence, planned=planned)
    marked = marks(evidence, planned=planned)[name]
    tested = np.isfinite(plain.p_drift)
    assert (np.isfinite(marked.p_drift) == tested).all()
    decided = np.isin(plain.verdict, (REPRODUCED, DRIFTED))
    assert decided.any() and not decided.all()
    assert (np.isin(marked.verdict, (REPRODUCED, DRIFTED)) <= decided).all()
    assert (marked.p_holm[decided] >= plain.p_holm[decided]).all()
    small = plain.p_equivalence < 0.5
    assert (marked.p_equivalence[small] >= plain.p_equivalence[small]).all()
    assert (marked.low[tested] <= plain.low[tested]).all()
    assert (marked.high[tested] >= plain.high[tested]).all()


def test_laboratories_further_apart_decide_ever_less():
    evidence, planned = drawn_tables(9, tables=100)
    before = compare(evidence, planned=planned)
    for between in (0.05, 0.2, 0.5, 2.0, 20.0):
        now = compare(replace(evidence, laboratory=between**2), planned=planned)
        for name in ("p_equivalence", "p_drift", "p_holm"):
            p_before = getattr(before, name)
            matters = p_before < 0.5
            rise = getattr(now, name)[matters] - p_before[matters]
            assert rise.min() > -1e-12, name
        before = now
    assert not np.isin(before.verdict, (REPRODUCED, DRIFTED)).any()


def test_two_runs_that_leave_a_number_open_leave_it_open_for_other_laboratories():
    # One degree of freedom; with the known variance between laboratories 9, and p 0.0026.
    two = Evidence(62.1, 2, 65.9, 0.18, 1, slack=0.05)
    plain = compare(two)
    laboratories = marks(two)[LABORATORY]
    assert plain.verdict == laboratories.verdict == UNDECIDED
    assert laboratories.p_drift == plain.p_drift
    assert laboratories.df == pytest.approx((0.52 / 0.27) ** 2)


@pytest.mark.parametrize("mark", [LABORATORY, SPREAD])
def test_a_tipping_point_is_where_the_verdict_of_the_table_turns(mark):
    table = Evidence([62.4, 70.0, 66.0], 3, [65.9, 70.1, 65.0], 0.04, 7, slack=0.05)
    tips = tipping_points(table, mark, planned=30)
    verdict = compare(table, planned=30).verdict
    assert verdict.tolist() == [DRIFTED, REPRODUCED, UNDECIDED]
    assert np.isnan(tips[2])
    for at in (0, 1):
        for factor, stays in ((0.999, True), (1.001, False)):
            variance = (factor * tips[at]) ** 2
            there = replace(table, laboratory=variance)
            if mark == SPREAD:
                there = replace(table, reference_variance=variance * 0.04, reference_df=7)
            found = compare(there, planned=30).verdict[at]
            assert (found == verdict[at]) == stays
