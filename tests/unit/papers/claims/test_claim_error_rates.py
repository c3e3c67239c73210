"""How often a claim is supported or contradicted when neither is true, by simulation under a fixed
seed."""

from __future__ import annotations

import pytest
from error_rates.claims import SCENARIOS, beyond_limits, claim_table

from benchmark.papers.claim_tests import KINDS


@pytest.fixture(scope="module")
def table():
    return claim_table(200, seed=2, seeds=(3,))


def test_false_verdicts_stay_within_five_percent_for_every_kind(table):
    assert {entry["claim"]["kind"] for entry in SCENARIOS.values()} == set(KINDS)
    assert set(table["scenario"]) == set(SCENARIOS)
    over = beyond_limits(table)
    assert over.empty, over.to_string()


def test_the_limits_are_used_and_not_merely_kept(table):
    assert table["supported"].max() > 0.02
    assert table["contradicted"].max() > 0.02


def test_equal_seeds_give_equal_rates():
    first, second = (claim_table(20, seed=3, seeds=(2,)) for _ in range(2))
    assert first.equals(second)
