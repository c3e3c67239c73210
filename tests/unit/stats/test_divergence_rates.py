"""Divergence as an outcome: rates, intervals and when it decides."""

from __future__ import annotations

import pytest
from statsmodels.stats.proportion import proportion_confint

from benchmark.stats.divergence import divergence_rate, diverges, p_more_divergence


def test_the_interval_is_that_of_clopper_and_pearson():
    found = divergence_rate(2, 5)
    assert (found.low, found.high) == pytest.approx(proportion_confint(2, 5, method="beta"))
    assert found.value == 0.4


def test_no_run_says_nothing():
    assert (divergence_rate(0, 0).low, divergence_rate(0, 0).high) == (0.0, 1.0)
    assert not diverges(0, 0)


@pytest.mark.parametrize(
    "diverged, runs, shown",
    [(1, 1, False), (1, 2, False), (2, 2, True), (1, 3, False), (2, 3, True), (2, 5, False),
     (3, 5, True), (4, 5, True), (0, 5, False)],
)  # fmt: skip
def test_few_runs_show_divergence_only_when_most_of_them_diverge(diverged, runs, shown):
    assert diverges(diverged, runs) is shown


def test_four_of_five_against_none_of_five_is_more_divergence():
    assert p_more_divergence((4, 5), (0, 5)) == pytest.approx(5 / 210)  # hypergeometric tail
    assert p_more_divergence((1, 2), (0, 2)) == pytest.approx(0.5)
