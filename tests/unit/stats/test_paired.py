"""Paired and blocked comparisons of losses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from made_up_results import long_table, run_table
from scipy import stats

from benchmark.stats.paired import against_default, blocked_p, compare, corrected, paired_tests


def by_seed(values, seeds=None):
    return pd.Series(values, index=range(len(values)) if seeds is None else seeds, dtype=float)


def paired(first: pd.Series, second: pd.Series):
    """Returns the test of two losses' scores indexed by seed, beside another pair that must not
    matter."""
    both = pd.DataFrame({"first": first, "second": second})
    firsts = np.stack([np.full(len(both), 0.5), both["first"]])
    seconds = np.stack([both["second"], both["second"]])
    return paired_tests(firsts, seconds).iloc[1]


def test_paired_test_equals_scipy_and_reports_effect_and_detectable_difference():
    a = by_seed([0.62, 0.64, 0.63, 0.66, 0.65])
    b = by_seed([0.61, 0.61, 0.62, 0.63, 0.64])
    found = paired(a, b)
    expected = stats.ttest_rel(a, b)
    assert found.t == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval(0.95)
    assert found.ci_low == pytest.approx(interval.low)
    assert found.ci_high == pytest.approx(interval.high)
    differences = a - b
    sd = differences.std(ddof=1)
    # Hedges' correction for 4 degrees of freedom: gamma(2) / (sqrt(2) gamma(1.5)).
    assert found.d_z == pytest.approx(differences.mean() / sd * 0.79788, rel=1e-4)
    assert found.se == pytest.approx(sd / np.sqrt(5))
    assert found.df == 4
    assert found.p_plain == found.p


def test_only_common_seeds_are_compared_and_the_note_says_so():
    first = by_seed([0.5, 0.6, 0.9], [0, 1, 2])
    second = by_seed([0.4, 0.45, 0.1], [0, 1, 7])
    found = paired(first, second)
    assert found.n == 2
    assert found.difference == pytest.approx(0.125)
    assert found.note == "2 common seeds of 3 and 3"
    holed = paired(by_seed([0.5, np.nan, 0.7]), by_seed([0.4, 0.5, 0.6]))
    assert holed.n == 2
    one = paired(by_seed([0.5]), by_seed([0.4]))
    assert one.difference == pytest.approx(0.1)
    assert np.isnan(one.p)
    assert one.note == "one pair, no test"
    none = paired(by_seed([0.5], [1]), by_seed([0.4], [2]))
    assert none.n == 0
    assert np.isnan(none.difference)
    assert "no common seed" in none.note


@pytest.mark.parametrize(
    ("shift", "word"),
    [
        (0.0, "identical runs"),
        (0.1, "the same difference at every seed"),
    ],
)
def test_differences_without_spread_give_no_p_value(shift, word):
    a = by_seed([0.51, 0.62, 0.73])
    found = paired(a + shift, a)
    assert found.difference == pytest.approx(shift)
    assert np.isnan([found.t, found.p, found.d_z]).all()
    assert word in found.note


def test_tests_at_once_equal_tests_alone():
    rng = np.random.default_rng(1)
    first, second = rng.normal(0.5, 0.1, (2, 40, 5))
    first[rng.random(first.shape) < 0.2] = np.nan
    together = paired_tests(first, second)
    alone = [paired_tests(a[None], b[None]) for a, b in zip(first, second, strict=True)]
    pd.testing.assert_frame_equal(together, pd.concat(alone, ignore_index=True), rtol=1e-12)


@pytest.mark.parametrize("family", [1, 6, 14])
def test_what_is_called_detectable_is_found_in_four_of_five_studies_after_holm(family):
    rng = np.random.default_rng(5)
    n = 5
    sd = 0.02
    tests = paired_tests(rng.normal(0, sd, (family, n)), np.zeros((family, n)))
    tests = corrected(tests.assign(family="a", se=sd / np.sqrt(n)), 0.05)
    shift = tests["detectable"].iloc[0]
    first = stats.ttest_1samp(rng.normal(shift, sd, (20_000, n)), 0, axis=1)
    # The other tests see nothing: Holm's level for the one that does is the strictest.
    is_found = first.pvalue <= 0.05 / family
    assert is_found.mean() == pytest.approx(0.8, abs=0.012)  # 4 standard errors


def test_families_are_corrected_apart():
    table = pd.DataFrame(
        {
            "family": ["a", "b", "a"],
            "p": [0.01, 0.04, 0.03],
            "se": 1.0,
            "df": 4.0,
        }
    )
    found = corrected(table, 0.05)
    assert found["p_holm"].tolist() == pytest.approx([0.02, 0.04, 0.03])
    assert found["family_size"].tolist() == [2, 1, 2]
    detectable = found["detectable"]
    assert detectable[0] == detectable[2]
    assert detectable[0] > detectable[1]


def test_shared_variances_replace_the_pairs_own_and_the_plain_p_stays():
    rng = np.random.default_rng(2)
    first, second = rng.normal(0.5, 0.1, (2, 3, 4))
    shared = (np.full(3, 0.01), np.full(3, 8.0))
    alone = paired_tests(first, second)
    together = paired_tests(first, second, shared=shared)
    t = together["difference"] / np.sqrt(0.01 / 4)
    assert together["p"].tolist() == pytest.approx(2 * stats.t.sf(np.abs(t), 8))
    assert together["p_plain"].tolist() == alone["p"].tolist()


def test_all_pairs_of_a_place_lend_their_spread():
    rng = np.random.default_rng(3)
    levels = {
        "dataset": ["a"],
        "setting": ["s"],
        "batch_size": [32, 64],
        "split": ["test"],
        "metric": ["m"],
        "loss": ["p", "q", "r", "s", "t"],
        "seed": [0, 1, 2],
    }
    index = pd.MultiIndex.from_product(levels.values(), names=levels)
    values = pd.Series(rng.normal(0.5, 0.01, len(index)), index, name="value")
    found = compare(values.reset_index(), "p")
    assert (found["df"] == 2 + 4).all()  # of 19 sisters with 2 degrees of freedom each
    baseline = found[found["kind"] == "baseline"].set_index(["batch_size", "loss"])
    pairs = found.query("kind == 'pairs' and loss == 'p'").set_index(["batch_size", "against"])
    assert baseline["p"].to_dict() == pytest.approx(pairs["p"].to_dict())


def test_a_dataset_with_one_loss_has_no_pairs_and_changes_none():
    both = run_table(long_table({"p": 0.5, "q": 0.6})).test_scores("last")
    alone = run_table(long_table({"p": 0.5}, dataset="other")).test_scores("last")
    found = compare(pd.concat([both, alone]), None)
    pd.testing.assert_frame_equal(found, compare(both, None))


def test_values_of_a_sweep_are_tested_against_its_default_and_corrected_together():
    default = {0: 0.50, 1: 0.52, 2: 0.51}
    near = {0: 0.534, 1: 0.55, 2: 0.54}
    far = {0: 0.6, 1: 0.622, 2: 0.61}
    tests = against_default([default, near, far], default)
    assert tests.loc[0, ["p", "difference", "p_holm"]].isna().all()
    assert tests["significant"].tolist() == [False, True, True]
    _, p_near, p_far = tests["p"]
    _, holm_near, holm_far = tests["p_holm"]
    assert holm_near == pytest.approx(max(p_near, 2 * p_far))
    assert holm_far == pytest.approx(2 * p_far)


def test_a_sweep_without_its_default_has_no_test():
    tests = against_default([{0: 0.5, 1: 0.6}], {})
    assert np.isnan(tests["p_holm"][0])
    assert "no common seed" in tests["note"][0]


def scores(losses=4, seeds=5):
    rng = np.random.default_rng(0)
    return rng.normal(0, 1, (losses, seeds)) + rng.normal(0, 3, seeds)


def test_every_pair_equals_statsmodels():
    values = scores()
    table = pd.DataFrame(values).melt(ignore_index=False, var_name="seed", value_name="score")
    table = table.rename_axis("loss").reset_index()
    fit = smf.ols("score ~ C(loss) + C(seed)", table).fit()
    found = blocked_p(values)
    for loss in (1, 2, 3):
        expected = fit.pvalues[f"C(loss)[T.{loss}]"]
        assert found[loss, 0] == pytest.approx(expected, rel=1e-9)
    assert fit.df_resid == 12
    assert np.allclose(found, found.T)


def test_a_loss_without_runs_stays_out_and_a_missing_seed_counts_for_none():
    values = scores()
    without = np.vstack([values, np.full(5, np.nan)])
    found = blocked_p(without)
    assert np.allclose(found[:4, :4], blocked_p(values))
    assert np.isnan(found[4]).all()
    holed = values.copy()
    holed[1, 2] = np.nan
    seeds_of_all = np.delete(values, 2, axis=1)
    assert np.allclose(blocked_p(holed), blocked_p(seeds_of_all))


@pytest.mark.parametrize("values", [scores(seeds=1), np.ones((3, 4))])
def test_one_seed_or_equal_runs_give_no_test(values):
    assert np.isnan(blocked_p(values)).all()


def test_the_table_of_pairs_has_it_beside_the_plain_test():
    table = run_table(long_table({"a": 0.5, "b": 0.51, "c": 0.5}, metrics=("m",)))
    found = compare(table.test_scores("last"), "a")
    assert found["p_blocked"].between(0, 1).all()
    assert found["p_plain"].notna().all()
