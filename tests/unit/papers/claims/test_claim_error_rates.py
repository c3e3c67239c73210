"""How often a claim is supported or contradicted when neither is true, by simulation under a fixed
seed."""

from __future__ import annotations

import pytest

from benchmark.papers.claims.kinds import KINDS
from benchmark.papers.claims.simulate import beyond_limits, scenarios, simulate_claims


@pytest.fixture(scope="module")
def table():
    return simulate_claims(200, seed=2, seeds=(3,))


def test_false_verdicts_stay_within_five_percent_for_every_kind(table):
    assert set(table["kind"]) == set(KINDS)
    over = beyond_limits(table)
    assert over.empty, over.to_string()


def test_the_limits_are_used_and_not_merely_kept(table):
    assert table["supported"].max() > 0.02
    assert table["contradicted"].max() > 0.02


def test_every_scenario_has_a_name_of_its_own():
    names = [scenario.name for scenario in scenarios()]
    assert len(set(names)) == len(names)


def test_equal_seeds_give_equal_rates():
    first, second = (simulate_claims(20, seed=3, seeds=(2,)) for _ in range(2))
    assert first.equals(second)
