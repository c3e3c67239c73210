"""Statistics of equal budgets on made-up trials."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from benchmark.stats.budgets.chosen import best_trial
from benchmark.stats.budgets.expected import expected_best, explained_share, resampled
from benchmark.stats.budgets.order import order_under
from benchmark.stats.simulations.budgets import rank_worlds


def test_the_expected_best_is_the_mean_over_all_ways_to_draw_without_replacement():
    scores = np.array([0.3, 0.9, 0.1, 0.5, 0.5])
    found = expected_best(scores)
    for n in range(1, 6):
        every = [max(drawn) for drawn in itertools.combinations(scores, n)]
        assert found[n - 1] == pytest.approx(np.mean(every))


def test_trials_drawn_again_are_trials_of_the_loss_on_folds_drawn_again():
    folds = np.array([[0.1, 0.3], [0.5, 0.9]])
    drawn = resampled(folds, 400, np.random.default_rng(0))
    assert drawn.shape == (400, 2)
    possible = {round(np.mean(pair), 6) for row in folds for pair in itertools.product(row, row)}
    assert set(np.round(drawn, 6).ravel()) == possible


def test_an_option_that_decides_explains_the_scores_and_one_that_does_not_explains_nothing():
    values = pd.Series(np.linspace(0, 1, 16))
    peak = -((values.to_numpy() - 0.5) ** 2)
    assert explained_share(values, peak)["share"] > 0.5, "an optimum in the middle counts as well"
    noise = np.random.default_rng(1).permutation(16) / 16
    assert explained_share(values, noise)["share"] < 0.2
    assert explained_share(pd.Series([2.0] * 16), peak) == {"share": 0.0, "p": 1.0, "rho": 0.0}


def test_the_best_of_the_first_trials_is_taken_and_one_without_a_score_never():
    scores = pd.Series([0.99, 0.2, np.nan, 0.4, 0.4], index=range(5))
    assert [best_trial(scores, budget) for budget in (0, 1, 2, 3, 4)] == [0, 1, 1, 3, 3]


def test_an_order_that_no_draw_changes_is_sure_and_a_tossed_one_is_not():
    scores = np.array([3.0, 2.0, 1.0])
    sure = order_under(scores, np.tile(scores[:, None], 50))
    assert (sure.kendall, sure.flipped, sure.best_kept) == (1.0, 0.0, 1.0)
    assert sure.low.tolist() == sure.high.tolist() == [1.0, 2.0, 3.0]
    tossed = order_under(scores, np.random.default_rng(0).normal(size=(3, 4000)))
    assert abs(tossed.kendall) < 0.05 and abs(tossed.best_kept - 1 / 3) < 0.05


def test_planted_losses_show_what_each_rule_set_gets_wrong():
    table = rank_worlds(60).set_index(["world", "rules"])
    fit, unfit = table.loc["published settings fit"], table.loc["published settings fit none"]
    assert fit.loc["authors", "wrong_pairs"] < 0.02 < fit.loc["equal, 1 trials", "wrong_pairs"]
    assert unfit.loc["equal, 16 trials", "wrong_pairs"] < unfit.loc["authors", "wrong_pairs"] / 2
    assert (
        unfit.loc["authors", "false_claims"] > 0.5 > unfit.loc["equal, 16 trials", "false_claims"]
    )
