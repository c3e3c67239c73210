"""The rule of every verdict: standard errors, degrees of freedom, intervals and p-values in each
case."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from benchmark.stats.rule import (
    Evidence,
    compare,
    seeds_to_decide,
    standard_error,
)

NAN = float("nan")


@pytest.mark.parametrize(
    ("sides", "variance", "df"),
    [
        (
            {"ours_sd": 0.3, "ours_n": 4, "reference_sd": 0.5, "reference_n": 5},
            0.09 / 4 + 0.25 / 5,
            3,
        ),
        ({"ours_sd": 0.3, "ours_n": 4}, 0.09 * (1 / 4 + 1), 3),
        ({"ours_sd": 0.3, "ours_n": 4, "reference_n": 5}, 0.09 * (1 / 4 + 1 / 5), 3),
        ({"ours_sd": 0.3, "ours_n": 4, "reference_sd": 0.5}, 0.09 * (1 / 4 + 1), 3),
        (
            {"ours_sd": NAN, "ours_n": 1, "reference_sd": 0.5, "reference_n": 5},
            0.25 * (1 + 1 / 5),
            4,
        ),
        (
            {
                "ours_sd": NAN,
                "ours_n": 1,
                "reference_sd": 0.5,
                "reference_n": 5,
                "pooled_sd": 0.2,
                "pooled_df": 3,
            },
            0.04 + 0.25 / 5,
            3,
        ),
        ({"ours_sd": NAN, "ours_n": 1, "pooled_sd": 0.2, "pooled_df": 8}, 0.04 * 2, 8),
        ({"ours_sd": 0.0, "ours_n": 3, "pooled_sd": 0.2, "pooled_df": 8}, 0.04 * (1 / 3 + 1), 8),
        ({"ours_sd": 0.0, "ours_n": 3}, 0.0, 2),
    ],
)
def test_standard_error_counts_both_sides(sides, variance, df):
    se, found_df, _ = standard_error(Evidence(ours=1.0, reference=0.0, **sides))
    assert se == pytest.approx(np.sqrt(variance)) and found_df == df


def test_one_run_without_any_spread_gives_no_test():
    judged = compare(Evidence(ours=1.0, ours_sd=NAN, ours_n=1, reference=0.0))
    assert np.isnan(judged.p_equivalence) and np.isnan(judged.p_drift)


def test_equivalence_p_value_is_five_percent_when_the_interval_touches_the_margin():
    half = stats.t.ppf(0.95, 4) * 0.3 * np.sqrt(1.2)
    judged = compare(Evidence(ours=50 + 1 - half, ours_sd=0.3, ours_n=5, reference=50.0))
    assert judged.high == pytest.approx(1.0) and judged.p_equivalence == pytest.approx(0.05)


def test_equivalence_p_value_equals_the_larger_one_sided_t_test():
    rng = np.random.default_rng(2)
    a, b = rng.normal(0.2, 0.4, 5), rng.normal(0.0, 0.4, 5)
    se = np.sqrt(a.var(ddof=1) / 5 + b.var(ddof=1) / 5)
    d = a.mean() - b.mean()
    expected = max(stats.t.sf((d + 1) / se, 4), stats.t.cdf((d - 1) / se, 4))
    judged = compare(Evidence(a.mean(), a.std(ddof=1), 5, b.mean(), b.std(ddof=1), 5))
    assert judged.p_equivalence == pytest.approx(expected)


def test_drift_p_value_is_two_sided_for_no_margin_and_one_sided_for_a_wide_one():
    sides = {"ours_sd": 0.5, "ours_n": 5, "reference": 0.0}
    se = 0.5 * np.sqrt(1.2)
    none = compare(Evidence(ours=2.0, margin=0.0, **sides)).p_drift
    assert none == pytest.approx(2 * stats.t.sf(2.0 / se, 4))
    wide = compare(Evidence(ours=102.0, margin=100.0, **sides)).p_drift
    assert wide == pytest.approx(stats.t.sf(2.0 / se, 4), rel=1e-5)


def test_drift_is_symmetric_in_its_direction():
    up = compare(Evidence(ours=53.0, ours_sd=0.5, ours_n=5, reference=50.0))
    down = compare(Evidence(ours=47.0, ours_sd=0.5, ours_n=5, reference=50.0))
    assert up.p_drift == pytest.approx(down.p_drift) and up.high == pytest.approx(-down.low)


def test_rounding_of_the_print_makes_both_verdicts_harder():
    exact, rounded = (
        compare(Evidence(ours=51.5, ours_sd=0.2, ours_n=5, reference=50.0, slack=slack))
        for slack in (0.0, 0.05)
    )
    assert rounded.p_drift > exact.p_drift
    near, rounded_near = (
        compare(Evidence(ours=50.2, ours_sd=0.2, ours_n=5, reference=50.0, slack=slack))
        for slack in (0.0, 0.05)
    )
    assert rounded_near.p_equivalence > near.p_equivalence
    assert rounded_near.high - near.high == pytest.approx(0.05)


@pytest.mark.parametrize(("ours", "equivalence", "drift"), [(50.9, 0.0, 1.0), (51.1, 1.0, 0.0)])
def test_without_any_spread_the_values_are_compared_as_they_are(ours, equivalence, drift):
    judged = compare(Evidence(ours=ours, ours_sd=0.0, ours_n=3, reference=50.0))
    assert (judged.p_equivalence, judged.p_drift) == (equivalence, drift)


def test_seeds_to_decide_is_the_first_number_that_decides():
    facts = {"reference_sd": NAN, "reference_n": NAN, "margin": 1.0}
    found = seeds_to_decide(0.1, 0.35, now=2, **facts)
    assert found == 5

    def equivalent(n):
        return compare(Evidence(0.1, 0.35, n, 0.0)).p_equivalence <= 0.05

    assert equivalent(5) and not any(equivalent(n) for n in (2, 3, 4))


def test_no_number_of_seeds_decides_against_a_single_noisy_value():
    assert np.isnan(seeds_to_decide(0.9, 1.0, NAN, NAN, now=5, margin=1.0))
