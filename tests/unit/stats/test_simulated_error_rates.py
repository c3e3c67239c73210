"""The checker's own error rates, by simulation under a fixed seed: the limits were set before any
run."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark.stats.rule import Evidence, compare
from benchmark.stats.simulation import (
    CELLS,
    LIMITED,
    RuleScenario,
    beyond_limits,
    rates,
    scenarios,
    simulate,
    worst,
)


@pytest.fixture(scope="module")
def table():
    return simulate(tables=400, seed=1)


def test_error_rates_stay_within_five_percent_for_one_to_five_seeds(table):
    over = beyond_limits(table)
    assert over.empty, over.to_string()


def test_every_number_of_seeds_and_kind_of_reference_is_simulated(table):
    assert set(table["ours_n"]) == {1, 2, 3, 4, 5} and set(table["reference"]) == {
        "single",
        "several",
    }
    assert len(worst(table)) == 11


def test_the_limits_are_used_and_not_merely_kept(table):
    worst_case = table[list(LIMITED)].max()
    assert (
        worst_case["reproduced_at_margin"] > 0.04
    )  # a rule that never says reproduced would keep every limit
    assert worst_case["any_drifted"] > 0.02


def test_five_seeds_with_little_noise_decide_both_ways(table):
    row = table.query("ours_n == 5 and sigma == 0.1 and ratio == 1.0")
    assert (row["reproduced_when_equal"] > 0.99).all() and (row["drifted_when_far"] > 0.99).all()


def test_a_rule_that_forgets_the_noise_of_the_published_side_would_be_caught():
    rng = np.random.default_rng(6)
    ours = rng.normal(0, 3.0, (400, CELLS, 5))
    published = rng.normal(0, 3.0, (400, CELLS))
    judged = compare(Evidence(ours.mean(-1), ours.std(-1, ddof=1), 5, published, reference_n=1e9))
    assert (judged.p_drift.min(axis=1) * CELLS <= 0.05).mean() > 0.2


def test_stress_scenarios_are_those_outside_the_assumptions():
    inside, outside = set(scenarios()), set(scenarios(stress=True))
    assert not inside & outside
    assert all(one.ratio != 1.0 for one in outside)


def test_equal_seeds_give_equal_rates():
    scenario = RuleScenario(3, "single", 0.3)
    first, second, other = (rates(scenario, 100, seed) for seed in (3, 3, 4))
    assert first == second != other
