"""The analysis of variance with the seed as block, against statsmodels and in a study's table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from long_tables import long_table, run_table

from benchmark.stats.paired import blocked_p, compare


def scores(losses=4, seeds=5):
    rng = np.random.default_rng(0)
    return rng.normal(0, 1, (losses, seeds)) + rng.normal(0, 3, seeds)


def test_every_pair_equals_statsmodels():
    values = scores()
    rows = [(loss, seed, values[loss, seed]) for loss in range(4) for seed in range(5)]
    table = pd.DataFrame(rows, columns=["loss", "seed", "score"])
    fit = smf.ols("score ~ C(loss) + C(seed)", table).fit()
    found = blocked_p(values)
    for loss in (1, 2, 3):
        assert found[loss, 0] == pytest.approx(fit.pvalues[f"C(loss)[T.{loss}]"], rel=1e-9)
    assert fit.df_resid == 12 and np.allclose(found, found.T)


def test_a_loss_without_runs_stays_out_and_a_missing_seed_counts_for_none():
    values = scores()
    without = np.vstack([values, np.full(5, np.nan)])
    assert np.allclose(blocked_p(without)[:4, :4], blocked_p(values))
    assert np.isnan(blocked_p(without)[4]).all()
    holed = values.copy()
    holed[1, 2] = np.nan
    assert np.allclose(blocked_p(holed), blocked_p(np.delete(values, 2, axis=1)))


def test_one_seed_or_equal_runs_give_no_test():
    assert np.isnan(blocked_p(scores(seeds=1))).all()
    assert np.isnan(blocked_p(np.ones((3, 4)))).all()


def test_the_table_of_pairs_has_it_beside_the_plain_test():
    table = run_table(long_table({"a": 0.5, "b": 0.51, "c": 0.5}, metrics=("m",)))
    found = compare(table.test_scores("last"), "a")
    assert found["p_blocked"].between(0, 1).all() and found["p_plain"].notna().all()
