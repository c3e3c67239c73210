"""Losses over datasets: ranks, Friedman, Holm and critical differences against scikit-posthocs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from made_up_results import long_table, run_table, without_number
from scipy import stats

from benchmark.report.figures.loss_figures import cliques
from benchmark.stats.over_datasets import analyse_datasets, compare_ranks, performance_profiles


def _scores() -> pd.DataFrame:
    noise = np.random.default_rng(0).normal(size=(8, 4))
    return pd.DataFrame(np.add(noise, [0.0, 1.0, 2.0, 2.1]), columns=list("abcd"))


def test_ranks_start_at_one_for_the_best_and_ties_share():
    scores = pd.DataFrame({"a": [1.0, 3.0], "b": [1.0, 2.0], "c": [0.0, 1.0]})
    ranks, _ = compare_ranks(scores)
    assert ranks.set_index("loss")["rank"].to_dict() == {"a": 1.25, "b": 1.75, "c": 3.0}


def test_friedman_is_near_scipys_for_many_datasets_and_exact_for_few():
    noise = np.random.default_rng(1).normal(size=(30, 4))
    scores = pd.DataFrame(np.add(noise, [0.0, 0.3, 0.4, 0.6]), columns=list("abcd"))
    whole = stats.friedmanchisquare(*scores.T.to_numpy()).pvalue
    assert compare_ranks(scores)[0]["p_friedman"][0] == pytest.approx(whole, abs=0.01)
    # equal orders on three datasets: 6 of the 216 arrangements have rank sums that far apart
    few = pd.DataFrame([[3.0, 2.0, 1.0]] * 3, columns=list("abc"))
    assert compare_ranks(few)[0]["p_friedman"][0] == pytest.approx(6 / 216, abs=0.001)


def test_the_critical_difference_is_where_nemenyis_test_turns_and_pairs_are_corrected_by_holm():
    scores = _scores()
    ranks, tests = compare_ranks(scores)
    scikit_posthocs = pytest.importorskip("scikit_posthocs")
    nemenyi = scikit_posthocs.posthoc_nemenyi_friedman(scores)
    apart = tests["difference"] > ranks["critical"][0]
    pairs = zip(tests["loss"], tests["against"], strict=True)
    assert apart.tolist() == [nemenyi.loc[pair] < 0.05 for pair in pairs]
    largest = tests["difference"].max() / np.sqrt(4 * 5 / (6 * 8))
    assert len(tests) == 6
    assert tests["p_holm"].min() == pytest.approx(12 * stats.norm.sf(largest))


def test_a_dataset_without_some_loss_is_left_out_and_two_have_no_test():
    scores = _scores()
    scores.loc[0, "a"] = np.nan
    assert compare_ranks(scores)[0]["datasets"][0] == 7
    found, _ = compare_ranks(_scores().head(2))
    assert found["datasets"][0] == 2
    assert found["p_friedman"].isna().all()


def test_a_profile_falls_from_one_to_the_share_at_the_top():
    index = pd.MultiIndex.from_product([["easy", "hard"], [0, 1]])
    scores = pd.DataFrame({"a": [0.9, 0.8, 0.2, 0.1], "b": [0.5, 0.4, 0.1, np.nan]}, index=index)
    found = performance_profiles(scores)
    a, b = (found[found["loss"] == loss].reset_index() for loss in "ab")
    assert a["share"].iloc[0] == 1.0
    assert b["share"].iloc[0] == 0.75  # a run that diverged reaches nothing
    assert (a["share"] >= b["share"]).all()
    assert a["share"].diff().dropna().le(0).all()
    assert (found["low"] <= found["share"]).all()
    assert (found["share"] <= found["high"]).all()
    # 0.2 is the best score of the hard dataset: a third above the best mean, 0.15.
    assert found["score"].max() == pytest.approx(0.2 / 0.15)


MEANS = {"good": 0.7, "fair": 0.6, "poor": 0.5}


def _runs(*datasets: str) -> pd.DataFrame:
    tables = [long_table(MEANS, dataset=name, seed=n, seeds=3) for n, name in enumerate(datasets)]
    return pd.concat(tables)


def _analysed(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    found = analyse_datasets(run_table(runs), ["recall_at_1"])
    return {name: table.set_index("loss") for name, table in found.items()}


def test_a_study_of_three_datasets_has_ranks_tests_and_profiles():
    found = _analysed(_runs("one", "two", "three"))
    assert found["ranks"]["rank"].to_dict() == {"good": 1.0, "fair": 2.0, "poor": 3.0}
    assert set(found["ranks"]["datasets"]) == {3}
    assert len(found["rank_tests"]) == 3
    assert set(found["profiles"]["runs"]) == {9}


def test_two_datasets_are_too_few_for_a_study():
    assert all(table.empty for table in _analysed(_runs("one", "two")).values())


def test_a_loss_that_diverges_on_a_dataset_ranks_last_there():
    runs = _runs("one", "two", "three")
    found = _analysed(without_number(runs, "loss == 'good' and dataset == 'one'", "diverged"))
    assert found["ranks"]["rank"]["good"] == pytest.approx((3 + 1 + 1) / 3)
    assert found["profiles"].loc["good", "share"].max() == pytest.approx(6 / 9)


def test_a_loss_that_was_not_run_on_every_dataset_takes_no_part():
    runs = _runs("one", "two", "three")
    found = _analysed(runs[(runs["loss"] != "poor") | (runs["dataset"] != "two")])
    assert set(found["ranks"].index) == {"good", "fair"}
    assert found["ranks"]["datasets"].iloc[0] == 3


def test_cliques_are_the_longest_stretches_that_no_test_divides():
    losses = list("abcd")
    assert list(cliques(losses, set())) == [(0, 3)]
    assert list(cliques(losses, {("a", "c"), ("a", "d"), ("b", "d")})) == [(0, 1), (1, 2), (2, 3)]
    assert list(cliques(losses, {("a", "b"), ("a", "c"), ("a", "d")})) == [(1, 3)]
