"""Challenges drawn from trained runs: how often twins are called, and worse losses seen."""

from __future__ import annotations

import numpy as np
import pytest
from error_rates.challenges import (
    ENOUGH,
    FINAL_SEEDS,
    GOAL,
    Bank,
    compared,
    draw,
    mean_power,
    rate,
    twin_rates,
    worse_rates,
)
from error_rates.page import worse_rows
from pages import ROOT

from benchmark.stats.planning import POWER

pytestmark = pytest.mark.rates


@pytest.fixture(scope="module")
def equal():
    """Return a bank whose settings are equal, but for the noise of a seed."""
    rng = np.random.default_rng(0)
    folds = rng.standard_normal((101, 2))
    return Bank(folds, rng.standard_normal((101, 2000)))


def test_twins_whose_settings_are_equal_are_called_at_the_level_of_the_test(equal):
    drawn = draw([equal, equal], 2000, "test")
    of_one = compared(drawn, 1)
    assert rate((of_one.better | of_one.worse)[:, 0]).value == pytest.approx(0.05, abs=0.015)
    of_three = compared(drawn, ENOUGH)
    assert rate((of_three.better | of_three.worse)[:, 0]).value < 0.05


def test_the_stated_difference_is_seen_with_the_stated_power(equal):
    drawn = draw([equal, equal], 2000, "test")
    tests = compared(drawn, 1)
    spreads = drawn.spreads[1][:, 0]
    scale = tests.detectable[:, 0] / tests.se[:, 0]
    detectable = scale * spreads / np.sqrt(FINAL_SEEDS)
    assert mean_power(detectable, spreads, tests) == pytest.approx(POWER)
    worse = Bank(equal.folds, equal.finals - detectable.mean())
    seen = rate(compared(draw([worse, equal], 2000, "test"), 1).better[:, 0])
    assert seen.value == pytest.approx(POWER, abs=0.03)


@pytest.fixture(scope="module")
def twins():
    return twin_rates(400, ENOUGH)


def test_twins_are_called_far_more_often_than_the_goal_says(twins):
    """What the page says: a test of two chosen settings knows nothing of other trials."""
    assert twins.tested.low > GOAL
    assert twins.levelled.low > GOAL
    assert twins.between > twins.within / np.sqrt(FINAL_SEEDS)


def test_folds_of_unequal_difficulty_keep_ranks_together(twins):
    assert twins.ranked.high < GOAL


@pytest.fixture(scope="module")
def worse():
    return worse_rates()


def test_the_better_of_two_settings_is_called_as_often_as_is_stated(worse):
    for row in worse:
        assert row.right.high >= row.of_settings, (row.disturbed, row.trials)


def test_a_much_worse_loss_is_rarely_called_better(worse):
    (row,) = [row for row in worse if row[:2] == (0.3, ENOUGH)]
    assert row.difference > row.detectable
    assert row.wrong.high <= GOAL
    assert row.ordered.low > POWER


def test_the_page_has_these_rates(worse):
    page = (ROOT / "docs" / "background" / "error_rates.md").read_text(encoding="utf-8")
    assert worse_rows(worse) in page
