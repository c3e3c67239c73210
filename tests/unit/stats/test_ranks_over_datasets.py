"""Losses over datasets: ranks, Friedman, Holm and critical differences against scikit-posthocs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmark.stats.over_datasets import compare_ranks, performance_profiles


def _scores() -> pd.DataFrame:
    noise = np.random.default_rng(0).normal(size=(8, 4))
    return pd.DataFrame(np.add(noise, [0.0, 1.0, 2.0, 2.1]), columns=list("abcd"))


def test_ranks_start_at_one_for_the_best_and_ties_share():
    scores = pd.DataFrame({"a": [1.0, 3.0], "b": [1.0, 2.0], "c": [0.0, 1.0]})
    found = compare_ranks(scores)
    assert found.ranks.to_dict() == {"a": 1.25, "b": 1.75, "c": 3.0}


def test_friedman_is_scipys():
    scores = _scores()
    assert compare_ranks(scores).p_friedman == stats.friedmanchisquare(*scores.T.to_numpy()).pvalue


def test_the_critical_difference_is_where_nemenyis_test_turns():
    scores = _scores()
    found = compare_ranks(scores)
    scikit_posthocs = pytest.importorskip("scikit_posthocs")
    nemenyi = scikit_posthocs.posthoc_nemenyi_friedman(scores)
    for one in scores:
        for other in set(scores) - {one}:
            apart = abs(found.ranks[one] - found.ranks[other]) > found.critical
            assert apart == (nemenyi.loc[one, other] < 0.05)


def test_pairs_are_corrected_by_holm():
    found = compare_ranks(_scores())
    z = abs(found.ranks["a"] - found.ranks["d"]) / np.sqrt(4 * 5 / (6 * 8))
    assert found.p_holm.loc["a", "d"] == pytest.approx(6 * 2 * stats.norm.sf(z))
    assert (found.p_holm.to_numpy() == found.p_holm.to_numpy().T).all()


def test_a_dataset_without_some_loss_is_left_out():
    scores = _scores()
    scores.loc[0, "a"] = np.nan
    assert compare_ranks(scores).datasets == 7


def test_two_datasets_have_ranks_and_no_test():
    found = compare_ranks(_scores().head(2))
    assert found.datasets == 2
    assert np.isnan(found.p_friedman)


def test_a_profile_falls_from_one_to_the_share_at_the_top():
    index = pd.MultiIndex.from_product([["easy", "hard"], [0, 1]])
    scores = pd.DataFrame({"a": [0.9, 0.8, 0.2, 0.1], "b": [0.5, 0.4, 0.1, 0.1]}, index=index)
    found = performance_profiles(scores)
    assert (found.loc[0, ["a", "b"]] == 1.0).all()
    assert (found["a"] >= found["b"]).all()
    assert found[["a", "b"]].diff().dropna().le(0).all(axis=None)
    # 0.2 is the best score of the hard dataset: a third above the best mean, 0.15.
    assert found["score"].max() == pytest.approx(0.2 / 0.15)
