"""Losses over datasets: ranks, Friedman, Holm and critical differences against scikit-posthocs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from made_up_results import long_table, run_table, without_number
from scipy import stats

from benchmark.report.figures.dataset_figures import cliques
from benchmark.stats.over_datasets import analyse_datasets, compare_ranks, performance_profiles


def _scores(seed: int, datasets: int, means: list[float]) -> pd.DataFrame:
    noise = np.random.default_rng(seed).normal(size=(datasets, 4))
    return pd.DataFrame(noise + means, columns=list("abcd"))


@pytest.fixture
def scores() -> pd.DataFrame:
    """Scores of four losses on eight datasets."""
    return _scores(0, 8, [0.0, 1.0, 2.0, 2.1])


def test_ranks_start_at_one_for_the_best_and_ties_share():
    scores = pd.DataFrame(
        {
            "a": [1.0, 3.0],
            "b": [1.0, 2.0],
            "c": [0.0, 1.0],
        }
    )
    ranks, _ = compare_ranks(scores)
    assert ranks["loss"].tolist() == ["a", "b", "c"]
    assert ranks["rank"].tolist() == [1.25, 1.75, 3.0]


def test_friedman_is_near_scipys_for_many_datasets_and_exact_for_few():
    scores = _scores(1, 30, [0.0, 0.3, 0.4, 0.6])
    expected = stats.friedmanchisquare(*scores.T.to_numpy())
    ranks, _ = compare_ranks(scores)
    assert ranks["p_friedman"][0] == pytest.approx(expected.pvalue, abs=0.01)
    # equal orders on three datasets: 6 of the 216 arrangements have rank sums that far apart
    three = pd.DataFrame([[3.0, 2.0, 1.0]] * 3, columns=list("abc"))
    ranks, _ = compare_ranks(three)
    assert ranks["p_friedman"][0] == pytest.approx(6 / 216, abs=0.001)


def test_the_critical_difference_is_where_nemenyis_test_turns(scores):
    ranks, tests = compare_ranks(scores)
    scikit_posthocs = pytest.importorskip("scikit_posthocs")
    nemenyi = scikit_posthocs.posthoc_nemenyi_friedman(scores)
    pairs = zip(tests["loss"], tests["against"], strict=True)
    expected = [nemenyi.loc[pair] < 0.05 for pair in pairs]
    apart = tests["difference"] > ranks["critical"][0]
    assert apart.tolist() == expected


def test_pairs_are_corrected_by_holm(scores):
    _, tests = compare_ranks(scores)
    standard_error = np.sqrt(4 * 5 / (6 * 8))
    largest = tests["difference"].max() / standard_error
    assert len(tests) == 6
    assert tests["p_holm"].min() == pytest.approx(12 * stats.norm.sf(largest))


def test_a_dataset_without_some_loss_is_left_out(scores):
    scores.loc[0, "a"] = np.nan
    ranks, _ = compare_ranks(scores)
    assert ranks["datasets"][0] == 7


def test_a_profile_falls_from_one_to_the_share_at_the_top():
    index = pd.MultiIndex.from_product([["easy", "hard"], [0, 1]])
    scores = pd.DataFrame(
        {
            "a": [0.9, 0.8, 0.2, 0.1],
            "b": [0.5, 0.4, 0.1, np.nan],
        },
        index=index,
    )
    found = performance_profiles(scores)
    shares = found.pivot(index="score", columns="loss", values="share")
    a = shares["a"]
    b = shares["b"]
    assert a.iloc[0] == 1.0
    assert b.iloc[0] == 0.75  # a run that diverged reaches nothing
    assert (a >= b).all()
    assert a.is_monotonic_decreasing
    assert (found["low"] <= found["share"]).all()
    assert (found["share"] <= found["high"]).all()
    # 0.2 is the best score of the hard dataset: a third above the best mean, 0.15.
    assert found["score"].max() == pytest.approx(0.2 / 0.15)


MEANS = {"good": 0.7, "fair": 0.6, "poor": 0.5}


def _runs(*datasets: str) -> pd.DataFrame:
    tables = []
    for seed, name in enumerate(datasets):
        tables.append(long_table(MEANS, dataset=name, seed=seed, seeds=3))
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
    found = _analysed(_runs("one", "two"))
    assert all(table.empty for table in found.values())


def test_a_loss_that_diverges_on_a_dataset_ranks_last_there():
    runs = _runs("one", "two", "three")
    diverged = without_number(runs, "loss == 'good' and dataset == 'one'", "diverged")
    found = _analysed(diverged)
    assert found["ranks"].loc["good", "rank"] == pytest.approx((3 + 1 + 1) / 3)
    shares = found["profiles"].loc["good", "share"]
    assert shares.max() == pytest.approx(6 / 9)


def test_a_loss_that_was_not_run_on_every_dataset_takes_no_part():
    runs = _runs("one", "two", "three")
    found = _analysed(runs.query("loss != 'poor' or dataset != 'two'"))
    assert set(found["ranks"].index) == {"good", "fair"}
    assert found["ranks"]["datasets"].iloc[0] == 3


@pytest.mark.parametrize(
    ("apart", "expected"),
    [
        (set(), [(0, 3)]),
        ({"ac", "ad", "bd"}, [(0, 1), (1, 2), (2, 3)]),
        ({"ab", "ac", "ad"}, [(1, 3)]),
    ],
)
def test_cliques_are_the_longest_stretches_that_no_test_divides(apart, expected):
    pairs = {tuple(pair) for pair in apart}
    assert list(cliques(list("abcd"), pairs)) == expected
