"""Statistics of equal budgets on made-up trials."""

from __future__ import annotations

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from error_rates.budgets import rank_worlds
from made_up_fields import made_up_tables, study_with_rules
from made_up_results import BEST, made_up_budgets, made_up_finals, made_up_trials

from benchmark.core.errors import ReferenceDataError, RunError
from benchmark.report.answer_of_trials import challenge
from benchmark.runs.field import freeze_field, with_field
from benchmark.runs.run_table import RunTable
from benchmark.stats.budgets import (
    analyse_budgets,
    best_trial,
    expected_best,
    explained_share,
    order_under,
    resampled,
    seeds_drawn,
)
from benchmark.study.model import References


def test_the_expected_best_is_the_mean_over_all_ways_to_draw_without_replacement():
    scores = np.array([0.3, 0.9, 0.1, 0.5, 0.5])
    found = expected_best(scores)
    for n, expected in enumerate(found, 1):
        bests = [max(drawn) for drawn in itertools.combinations(scores, n)]
        assert expected == pytest.approx(np.mean(bests))


def test_trials_drawn_again_are_trials_of_the_loss_on_folds_drawn_again():
    folds = np.array([[0.1, 0.3], [0.5, 0.9]])
    drawn = resampled(folds, 400, np.random.default_rng(0))
    assert drawn.shape == (400, 2)
    # means of two draws of the folds of one trial
    possible = {0.1, 0.2, 0.3, 0.5, 0.7, 0.9}
    assert set(np.round(drawn, 6).ravel()) == possible


@pytest.mark.filterwarnings("error")
def test_seeds_drawn_again_of_a_loss_without_scores_have_no_mean():
    finals = np.array([[0.2, np.nan, 0.4], [np.nan] * 3])
    drawn = seeds_drawn(finals, 400, np.random.default_rng(0))
    with_scores, without = drawn
    assert np.isnan(without).all()
    means = set(np.round(with_scores[np.isfinite(with_scores)], 6))
    assert means >= {0.2, 0.3, 0.4}
    assert means <= {0.2, 0.266667, 0.3, 0.333333, 0.4}


def test_an_option_that_decides_explains_the_scores_and_one_that_does_not_explains_nothing():
    values = pd.Series(np.linspace(0, 1, 16))
    peak = -((values.to_numpy() - 0.5) ** 2)
    of_peak = explained_share(values, peak)
    assert of_peak["share"] > 0.5, "an optimum in the middle counts as well"
    noise = np.random.default_rng(1).permutation(16) / 16
    of_noise = explained_share(values, noise)
    assert of_noise["share"] < 0.2
    of_constant = explained_share(pd.Series([2.0] * 16), peak)
    assert of_constant == {"share": 0.0, "p": 1.0, "rho": 0.0}


@pytest.mark.parametrize(
    ("budget", "best"),
    [
        (0, 0),
        (1, 1),
        (2, 1),
        (3, 3),
        (4, 3),
    ],
)
def test_the_best_of_the_first_trials_is_taken_and_one_without_a_score_never(budget, best):
    scores = pd.Series([0.99, 0.2, np.nan, 0.4, 0.4], index=range(5))
    assert best_trial(scores, budget) == best


def test_an_order_that_no_draw_changes_is_sure_and_a_tossed_one_is_not():
    scores = np.array([3.0, 2.0, 1.0])
    sure = order_under(scores, np.tile(scores[:, None], 50))
    assert sure["kendall"] == 1.0
    assert sure["flipped"] == 0.0
    assert sure["best_kept"] == 1.0
    assert sure["rank_low"].tolist() == [1.0, 2.0, 3.0]
    assert sure["rank_high"].tolist() == [1.0, 2.0, 3.0]
    tossed = order_under(scores, np.random.default_rng(0).normal(size=(3, 4000)))
    assert abs(tossed["kendall"]) < 0.05
    assert abs(tossed["best_kept"] - 1 / 3) < 0.05


def test_planted_losses_show_what_each_rule_set_gets_wrong():
    table = rank_worlds(60).set_index(["world", "rules"])
    fit = table.loc["published settings fit"]
    assert fit.loc["authors", "wrong_pairs"] < 0.02
    assert fit.loc["equal, 1 trials", "wrong_pairs"] > 0.02
    unfit = table.loc["published settings fit none"]
    of_authors = unfit.loc["authors"]
    of_equal = unfit.loc["equal, 16 trials"]
    assert of_equal["wrong_pairs"] < of_authors["wrong_pairs"] / 2
    assert of_authors["false_claims"] > 0.5
    assert of_equal["false_claims"] < 0.5


def test_the_tables_of_made_up_trials_say_what_was_planted():
    tables = made_up_budgets()
    ranks = tables["budget_ranks"].set_index(["trials", "loss"])
    assert set(ranks["rules"]) == {"authors", "equal"}
    assert set(ranks["n"]) == {3}
    losses = ["sup_ap", "smooth_ap", "proxy_anchor"]
    assert ranks.loc[4, "rank"].loc[losses].tolist() == [1, 2, 3]
    assert ranks.loc[(0, "sup_ap"), "seconds"] == 0
    assert ranks.loc[(4, "sup_ap"), "seconds"] == 2.0 * 4 * 2
    assert ranks["rank"].between(ranks["rank_low"], ranks["rank_high"]).all()
    curves = tables["budget_curves"].set_index(["loss", "trials"])["mean"]
    best = curves.loc["smooth_ap"]
    assert best.is_monotonic_increasing
    assert best[4] == pytest.approx(0.605)
    assert curves.loc["proxy_anchor", 1] < 0.45, "a trial that diverged counts as 0"
    gaps = tables["budget_gaps"].set_index(["trials", "loss"])
    assert gaps.loc[4, "difference"].to_numpy() == pytest.approx([0.04] * 3, abs=0.01)
    assert set(tables["budget_options"]["option"]) == {"recipe.optimizer.lr"}
    order = tables["budget_order"].set_index(["trials", "source"])
    assert order.loc[(0, "seeds"), "best_kept"] == 1.0
    assert set(order.index) == {
        (0, "seeds"),
        (1, "seeds"),
        (1, "trials"),
        (1, "both"),
        (4, "seeds"),
        (4, "trials"),
        (4, "both"),
    }


def test_a_rank_is_sure_only_where_both_neighbours_differ_significantly():
    final = made_up_finals(("authors",))
    # every seed has the first loss above the second, by too different amounts
    values = {
        "sup_ap": (0.61, 0.63, 0.66),
        "smooth_ap": (0.6, 0.6, 0.6),
        "proxy_anchor": (0.4, 0.4, 0.4),
    }
    scores = final.scores.assign(value=np.concatenate([values[loss] for loss in BEST]))
    final = dataclasses.replace(final, scores=scores)
    ranks = analyse_budgets(made_up_trials(), final, "map_at_r")["budget_ranks"]
    bounds = ranks.set_index("loss").loc[[*values], ["rank_low", "rank_high"]]
    assert bounds.to_numpy().tolist() == [
        [1, 2],
        [1, 2],
        [3, 3],
    ]


def test_a_challenger_is_named_with_its_places_and_whom_it_differs_from():
    ranks = analyse_budgets(made_up_trials(), made_up_finals(), "map_at_r")["budget_ranks"]
    place = ranks.query("loss == 'sup_ap' and trials == 4").iloc[0]
    tests = pd.DataFrame(
        {
            "dataset": place["dataset"],
            "setting": "r~equal4",
            "metric": "map_at_r",
            "kind": "baseline",
            "against": "sup_ap",
            "loss": ["smooth_ap", "proxy_anchor"],
            "difference": [0.1, -0.1],
            "significant": [True, False],
        }
    )
    caution, first, second = challenge(ranks, tests, "sup_ap", "map_at_r", str.upper)
    assert caution.startswith("No conclusion about SUP_AP at equal effort: 4 trials are few ")
    rank, low, high = place[["rank", "rank_low", "rank_high"]].astype(int)
    words = f"SUP_AP has rank {rank} of 3 [{low} to {high}] after 4 trials (mAP@R "
    assert first.startswith(words)
    assert "with its defaults (mAP@R " in first
    assert second == (
        "The setting that 4 trials chose is significantly below SMOOTH_AP, not told apart from 1 "
        "of the 2 others. These are tests of settings: other trials may choose others."
    )


def test_one_loss_meets_the_field_at_its_own_budget_only(tmp_path):
    trials, final = made_up_tables()
    of_field = study_with_rules(tmp_path / "study")
    assert freeze_field(of_field, trials, final, tmp_path / "field") == 30 + 27
    runs = made_up_finals(("authors", "equal1")).runs.query("loss == 'sup_ap'")
    mine = runs.assign(loss="mine", run_id=runs["run_id"].str.replace("sup_ap", "mine"))
    scores = [(run_id, "test", "last", 1, "map_at_r", 0.9) for run_id in mine["run_id"]]
    table = RunTable.from_rows(mine.to_dict("records"), scores)
    references = References(field=str(tmp_path / "field"))
    study = SimpleNamespace(references=references, trials=None)
    joined = with_field(table, study)
    assert set(joined.runs["setting"]) == {"test_resnet~authors", "test_resnet~equal1"}
    assert set(joined.runs["loss"]) == {"mine", "smooth_ap", "sup_ap", "proxy_anchor"}
    ranks = analyse_budgets(made_up_trials(), joined, "map_at_r")["budget_ranks"]
    assert set(ranks["trials"]) == {0, 1}


def test_a_run_without_a_result_is_not_frozen(tmp_path):
    trials, final = made_up_tables()
    final.runs.loc[3, "status"] = "missing"
    study = study_with_rules(tmp_path / "study")
    with pytest.raises(ReferenceDataError, match="1 runs have no result"):
        freeze_field(study, trials, final, tmp_path / "field")


@pytest.mark.parametrize(
    ("of", "number"), [("trials", "trials.trial"), ("final runs", "trials.budget")]
)
def test_runs_that_are_no_trials_and_that_none_chose_are_an_error(of, number):
    tables = {"trials": made_up_trials(), "final runs": made_up_finals()}
    runs = tables[of].runs
    first_unknown = runs[number].where(runs.index > 0, None)
    for others in (runs.drop(columns=number), runs.assign(**{number: first_unknown})):
        changed = tables | {of: dataclasses.replace(tables[of], runs=others)}
        with pytest.raises(RunError, match=rf"not all runs are {of}.*references\.trials"):
            analyse_budgets(*changed.values(), "map_at_r", 0.05)
