"""A loss that diverges loses its comparisons, and its rate has an exact interval."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from made_up_results import long_table, made_up_runs, made_up_study, run_table, without_number
from scipy.stats import binomtest
from statsmodels.stats.proportion import proportion_confint

from benchmark.stats.intervals import diverges, p_more_divergence
from benchmark.stats.study_tables import analyse, divergence_rates
from benchmark.study.model import Comparison

COMPARISON = Comparison("base", ("base", "good"), 0.05)


def _analysed(query: str) -> dict[str, pd.DataFrame]:
    runs = long_table({"base": 0.5, "good": 0.7}, metrics=("recall_at_1",))
    return analyse(run_table(without_number(runs, query, "diverged")), COMPARISON, ["recall_at_1"])


@pytest.mark.parametrize("seeds", ["seed < 3", "seed < 5"], ids=["three of five", "all"])
def test_the_better_score_of_a_loss_that_diverges_wins_nothing(seeds):
    found = _analysed(f"loss == 'good' and {seeds}")
    for name in ("paired", "ablation"):
        for row in found[name].itertuples():
            assert row.lost == "good" and not row.significant


def test_one_diverged_run_of_five_decides_nothing_by_itself():
    row = next(_analysed("loss == 'good' and seed == 0")["paired"].itertuples())
    assert row.lost == "" and row.significant and row.n == 4


def test_two_losses_that_both_diverge_are_told_apart_by_nothing():
    assert set(_analysed("seed < 3")["paired"]["lost"]) == {""}


def test_the_rate_has_the_exact_interval():
    rates = _analysed("loss == 'good' and seed < 3")["divergence"].set_index("loss")
    exact = binomtest(3, 5).proportion_ci(0.95)
    assert rates.loc["good", "rate"] == 0.6
    assert rates.loc["good", ["low", "high"]].tolist() == pytest.approx([exact.low, exact.high])
    assert rates["diverges"].to_dict() == {"base": False, "good": True}


def test_missing_and_failed_runs_have_not_ended():
    runs = long_table({"base": 0.5, "good": 0.7}, metrics=("recall_at_1",))
    runs = without_number(runs, "loss == 'good' and seed < 3", "failed")
    found = analyse(run_table(runs), COMPARISON, ["recall_at_1"])["divergence"].set_index("loss")
    assert found["n_ended"].to_dict() == {"base": 5, "good": 2}
    assert np.array_equal(found["n_diverged"], [0, 0])


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
