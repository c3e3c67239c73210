"""Welch's test of the largest batch size against the smallest: against scipy, and by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from error_rates.batch_sizes import wrong_and_seen
from scipy import stats

from benchmark.stats.batch_sizes import COLUMNS, batch_size_tests, welch_test
from benchmark.stats.intervals import holm

FIRST = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
SECOND = np.array([2.0, 4.0, 6.0])


def scores_of(by_loss, dataset="glyphs_1k", metric="map"):
    """Return a row per run of {loss: {batch size: scores}}."""
    rows = [
        {"loss": loss, "batch_size": size, "seed": seed, "value": value}
        for loss, sizes in by_loss.items()
        for size, values in sizes.items()
        for seed, value in enumerate(values)
    ]
    place = {"dataset": dataset, "setting": "r", "split": "test", "metric": metric}
    return pd.DataFrame(rows).assign(**place)


def test_the_test_of_two_samples_is_the_one_computed_by_hand():
    # variances 2.5 / 5 and 4 / 3 of the means; df by Welch and Satterthwaite
    found = welch_test(FIRST, SECOND)
    assert found["difference"] == -1
    assert found["se"] ** 2 == pytest.approx(0.5 + 4 / 3)
    assert found["t"] == pytest.approx(-1 / np.sqrt(11 / 6))
    assert found["df"] == pytest.approx((11 / 6) ** 2 / (0.5**2 / 4 + (4 / 3) ** 2 / 2))
    half = stats.t.ppf(0.975, found["df"]) * found["se"]
    assert (found["ci_low"], found["ci_high"]) == pytest.approx((-1 - half, -1 + half))


@pytest.mark.parametrize("seed", range(5))
def test_the_test_of_two_samples_is_that_of_scipy(seed):
    rng = np.random.default_rng(seed)
    first = rng.normal(0.6, 0.01, 5)
    second = rng.normal(0.59, 0.03, 3)
    found = welch_test(first, second, 0.1)
    expected = stats.ttest_ind(first, second, equal_var=False)
    assert found["p"] == pytest.approx(expected.pvalue)
    assert found["df"] == pytest.approx(expected.df)
    low, high = expected.confidence_interval(0.9)
    assert (found["ci_low"], found["ci_high"]) == pytest.approx((low, high))


@pytest.mark.parametrize(("first", "second"), [([0.5], FIRST), ([0.5] * 3, [0.4] * 3)])
def test_one_run_or_no_spread_gives_a_difference_and_no_test(first, second):
    found = welch_test(np.array(first), np.array(second))
    assert np.isfinite(found["difference"])
    assert "p" not in found


def test_a_loss_is_tested_at_its_largest_batch_size_against_its_smallest():
    sizes = {64: SECOND, 32: FIRST / 10, 128: FIRST}
    found = batch_size_tests(scores_of({"sup_ap": sizes, "roadmap": {32: FIRST}}))
    assert list(found.columns) == COLUMNS
    (row,) = found.itertuples()
    assert (row.loss, row.batch_size, row.against) == ("sup_ap", 128, 32)
    assert row.difference == pytest.approx(2.7)
    assert (row.n, row.n_against) == (5, 5)


def test_the_losses_of_one_dataset_split_and_metric_are_a_family_of_their_own():
    shifts = {"a": 9.0, "b": 2.0, "c": 0.5}
    one = scores_of({loss: {32: FIRST, 128: FIRST + by} for loss, by in shifts.items()})
    other = scores_of({"a": {32: FIRST, 128: FIRST + 3}}, metric="recall_at_1")
    found = batch_size_tests(pd.concat([one, other]))
    sizes = found.groupby("metric")["family_size"].unique().map(list).to_dict()
    assert sizes == {"map": [3], "recall_at_1": [1]}
    of_map = found[found["metric"] == "map"]
    assert of_map["p_holm"].to_numpy() == pytest.approx(holm(of_map["p"]))
    assert of_map["significant"].tolist() == [True, False, False]


def test_without_two_batch_sizes_there_is_no_row():
    found = batch_size_tests(scores_of({"sup_ap": {32: FIRST}}))
    assert found.empty
    assert list(found.columns) == COLUMNS


def test_what_runs_of_a_seed_share_makes_the_test_wrong_more_rarely():
    apart, _ = wrong_and_seen(2000, seeds=5)
    alike, _ = wrong_and_seen(2000, seeds=5, shared=0.5)
    assert alike.value < 0.01 < apart.low
    assert apart.value <= 0.06
