"""A loss that diverges loses its comparisons, and the rate of divergence has an interval."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from long_tables import long_table, run_table, without_number
from scipy.stats import binomtest

from benchmark.stats.analysis import analyse
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
