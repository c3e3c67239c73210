"""The descriptive tables against the runs that they are made of, by hand."""

from __future__ import annotations

import pandas as pd
import pytest
from made_up_results import made_up_runs, made_up_study, run_table

from benchmark.stats.study_tables import (
    best_epochs,
    costs,
    differences_by_seed,
    learning_curves,
)

METRICS = ["map_at_r", "recall_at_1"]
CELL = "loss == 'sup_ap' and batch_size == 32"


@pytest.fixture
def runs():
    return made_up_runs(made_up_study(), bad={("sup_ap", 32, 4): "diverged"})


def test_curves_are_the_mean_of_each_epoch_of_the_first_metric(runs):
    curves = learning_curves(run_table(runs), METRICS)
    assert set(curves["metric"]) == {"map_at_r"}
    mine = runs.query(f"{CELL} and metric == 'map_at_r' and selection == 'curve' and epoch == 3")
    row = curves.query(f"{CELL} and epoch == 3").iloc[0]
    assert (row["n"], row["mean"], row["sd"]) == (
        4,
        pytest.approx(mine["value"].mean()),
        pytest.approx(mine["value"].std()),
    )


def test_the_first_metric_with_values_is_the_one_of_the_curves(runs):
    assert set(learning_curves(run_table(runs), ["recall_at_7", "map"])["metric"]) == {"map"}


def test_best_epochs_compare_the_selections_run_by_run(runs):
    row = best_epochs(run_table(runs), METRICS).query(f"{CELL} and metric == 'map_at_r'").iloc[0]
    mine = runs.query(f"{CELL} and metric == 'map_at_r'").pivot_table(
        index="seed", columns="selection", values="value", aggfunc="last"
    )
    assert row["n"] == 4
    assert row["difference"] == pytest.approx((mine["best"] - mine["last"]).mean())
    assert row["difference"] >= 0


def test_differences_need_the_same_seed_of_the_baseline(runs):
    headline = run_table(runs).test_scores("last", METRICS)
    table = differences_by_seed(headline, "smooth_ap")
    row = table.query(f"{CELL} and metric == 'map_at_r'")
    assert row["seed"].tolist() == [0, 1, 2, 3]
    assert (row["difference"] == row["value"] - row["value_against"]).all()
    assert "smooth_ap" not in set(table["loss"]) and set(table["against"]) == {"smooth_ap"}
    assert differences_by_seed(headline, None).empty


def test_the_share_of_the_loss_is_its_time_over_that_of_a_step(runs):
    row = costs(run_table(runs)).query(CELL).iloc[0]
    step_ms = 1000 * 32 / row["images_per_second"]
    assert row["loss_share"] == pytest.approx(row["loss_ms"] / step_ms)
    assert row["loss_ms_minimum"] < row["loss_ms"] < row["loss_ms_maximum"]
    assert row["n"] == 4 and pd.isna(row["peak_gpu_mb"]) and row["peak_rss_mb"] == 610


def test_a_network_that_is_not_trained_has_no_cost_of_training(runs):
    speed = (runs["loss"] == "roadmap") & (runs["metric"] == "images_per_second")
    runs.loc[speed, "value"] = 0.0
    assert "roadmap" not in set(costs(run_table(runs))["loss"])


def test_tables_of_a_study_without_results_are_empty(runs):
    nothing = run_table(runs[runs["status"] != "ok"])
    assert learning_curves(nothing, METRICS).empty and best_epochs(nothing, METRICS).empty
    assert costs(nothing).empty
