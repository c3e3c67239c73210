"""Several looks at one study: their level, their error rates, and what happens between them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from error_rates.rule import PAIRED, World, any_drifted, reproduced
from made_up_results import made_up_study
from scipy import stats

from benchmark.stats.looks import at_level, level_of, obrien_fleming, pocock

LOOKS = (3, 5, 10)


def test_one_look_is_the_plain_test():
    assert pocock((5,), 0.05) == 0.05


def test_two_equal_stages_have_pococks_constant():
    # Pocock (1977): two looks at a two-sided 5% test, each at 0.0294; here 2.5% for each side.
    assert pocock((5, 10), 0.025) == pytest.approx(0.0294 / 2, abs=2e-4)


def test_looks_cost_more_than_one_and_less_than_a_split():
    assert 0.05 / 3 < pocock(LOOKS) < 0.05


def test_obrien_fleming_spends_nearly_all_at_the_last_look():
    # Jennison and Turnbull (2000), table 2.3: two equal stages, a two-sided 5%: c = 1.978.
    first, last = obrien_fleming((5, 10), 0.025)
    assert last == pytest.approx(stats.norm.sf(1.978), abs=2e-4)
    assert first == pytest.approx(stats.norm.sf(1.978 * np.sqrt(2)), abs=2e-4)
    assert obrien_fleming(LOOKS)[0] < 0.002


def test_a_study_of_one_look_tests_at_the_whole_level_and_one_of_three_at_less():
    one = made_up_study()
    three = dataclasses.replace(one, looks=(3, 5, 10))
    assert (level_of(one), level_of(three)) == (0.05, pocock(LOOKS))
    assert at_level(one).comparison.alpha == 0.05
    assert at_level(three).comparison.alpha == pytest.approx(2 * pocock(LOOKS, 0.025))


def test_planned_looks_keep_the_error_that_unplanned_ones_exceed():
    world = World(reference=PAIRED, sigma=0.1, seeds=10)
    planned = {"looks": LOOKS, "level": pocock(LOOKS)}
    assert reproduced(world, 300, 1.0, **planned).low <= 0.05
    assert reproduced(world, 300, 1.0, looks=LOOKS, level=0.05).low > 0.05
    assert any_drifted(world, 300, **planned).low <= 0.05


def test_the_level_holds_for_independent_normal_looks():
    draws = np.random.default_rng(0).standard_normal((200_000, 10)).cumsum(axis=1)
    z = draws[:, [2, 4, 9]] / np.sqrt([3, 5, 10])
    rejected = (z > stats.norm.isf(pocock(LOOKS))).any(axis=1).mean()
    assert rejected == pytest.approx(0.05, abs=0.002)
