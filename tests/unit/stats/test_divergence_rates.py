"""Divergence as an outcome: rates, intervals and when it decides."""

from __future__ import annotations

import pytest
from long_tables import run_table
from made_up_results import made_up_runs, made_up_study
from statsmodels.stats.proportion import proportion_confint

from benchmark.stats.divergence import divergence_rates, diverges, p_more_divergence


def test_the_interval_is_that_of_clopper_and_pearson():
    study = made_up_study(losses=("smooth_ap",), batch_sizes=(32,))
    bad = {("smooth_ap", 32, seed): "diverged" for seed in (0, 3)}
    (found,) = divergence_rates(run_table(made_up_runs(study, bad=bad))).itertuples()
    assert (found.low, found.high) == pytest.approx(proportion_confint(2, 5, method="beta"))
    assert (found.n_diverged, found.n_ended, found.rate) == (2, 5, 0.4)


def test_no_run_says_nothing():
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
