"""All statistics of a made-up study: families, pairing, the ablation, gains, and runs without a
number."""

from __future__ import annotations

import pytest
from made_up_results import long_table, run_table, without_number
from scipy import stats

from benchmark.core.files import write_csv
from benchmark.runs.run_table import RunTable
from benchmark.stats.study_tables import analyse
from benchmark.study.model import Comparison

COMPARISON = Comparison("smooth_ap", ("smooth_ap", "sup_ap", "roadmap"), 0.05)
METRICS = ["recall_at_1", "map_at_r"]


@pytest.fixture
def runs():
    return long_table(
        {"smooth_ap": 0.50, "sup_ap": 0.52, "roadmap": 0.53, "fast_ap": 0.50}, batch_sizes=(32, 128)
    )


def test_summary_has_mean_and_spread_of_each_cell_under_both_selections(runs):
    table = analyse(run_table(runs), COMPARISON, METRICS)["summary"]
    assert len(table) == 4 * 2 * 2 * 2
    row = table.query(
        "loss == 'sup_ap' and batch_size == 32 and metric == 'map_at_r' and selection == 'last'"
    ).iloc[0]
    mine = runs.query(
        "loss == 'sup_ap' and batch_size == 32 and metric == 'map_at_r' and selection == 'last'"
    )["value"]
    assert (row["n"], row["mean"], row["sd"]) == (
        5,
        pytest.approx(mine.mean()),
        pytest.approx(mine.std()),
    )


def test_every_loss_meets_the_baseline_and_every_pair_is_tested_once(runs):
    table = analyse(run_table(runs), COMPARISON, METRICS)["paired"]
    counts = table.groupby(["batch_size", "metric", "kind"]).size().unstack()
    assert (counts["baseline"] == 3).all() and (counts["pairs"] == 6).all()
    assert not (table["loss"] == table["against"]).any()


def test_a_family_is_one_dataset_and_metric_over_batch_sizes(runs):
    table = analyse(run_table(runs), COMPARISON, METRICS)["paired"]
    family = table[(table["kind"] == "baseline") & (table["metric"] == "map_at_r")]
    assert set(family["family_size"]) == {6}  # three losses at two batch sizes
    assert family["family"].unique().tolist() == ["baseline: glyphs test map_at_r"]
    assert family["p_holm"].min() == pytest.approx(min(6 * family["p"].min(), 1))


def test_ablation_steps_follow_the_order_and_end_with_the_total(runs):
    table = analyse(run_table(runs), COMPARISON, METRICS)["ablation"]
    steps = (
        table.query("batch_size == 32 and metric == 'map_at_r'")[["step", "loss", "against"]]
        .to_numpy()
        .tolist()
    )
    assert steps == [
        ["1", "sup_ap", "smooth_ap"],
        ["2", "roadmap", "sup_ap"],
        ["total", "roadmap", "smooth_ap"],
    ]


def test_gain_is_relative_to_the_step_before_calibration(runs):
    row = (
        analyse(run_table(runs), COMPARISON, METRICS)["gain"]
        .query("batch_size == 32 and metric == 'map_at_r'")
        .iloc[0]
    )
    kept = runs.query("batch_size == 32 and metric == 'map_at_r' and selection == 'last'")
    a, b = (kept[kept["loss"] == name]["value"].to_numpy() for name in ("roadmap", "sup_ap"))
    gains = 100 * (a - b) / b
    low, high = stats.t.interval(0.95, 4, loc=gains.mean(), scale=stats.sem(gains))
    assert (row["gain"], row["ci_low"], row["ci_high"]) == tuple(
        pytest.approx(v) for v in (gains.mean(), low, high)
    )
    assert row["gain_of_means"] == pytest.approx(100 * (a.mean() / b.mean() - 1))


def test_diverged_and_missing_runs_are_counted_and_left_out_of_every_number(runs):
    runs = without_number(runs, "loss == 'roadmap' and batch_size == 32 and seed == 0", "diverged")
    runs = without_number(runs, "loss == 'roadmap' and batch_size == 32 and seed == 1", "missing")
    found = analyse(run_table(runs), COMPARISON, METRICS)
    row = found["summary"].query("loss == 'roadmap' and batch_size == 32").iloc[0]
    assert (row["n"], row["n_diverged"], row["n_absent"]) == (3, 1, 1)
    test = (
        found["paired"]
        .query("kind == 'baseline' and loss == 'roadmap' and batch_size == 32")
        .iloc[0]
    )
    assert test["n"] == 3 and test["note"] == "3 common seeds of 3 and 5"


def test_one_seed_gives_differences_and_no_test():
    runs = long_table({"smooth_ap": 0.5, "sup_ap": 0.6}, seeds=1)
    found = analyse(run_table(runs), COMPARISON, METRICS)["paired"]
    assert (
        found["difference"].notna().all()
        and found["p_holm"].isna().all()
        and not found["significant"].any()
    )


def test_an_unknown_baseline_leaves_the_pairs(runs):
    kinds = analyse(run_table(runs), Comparison("margin", (), 0.05), METRICS)
    assert set(kinds["paired"]["kind"]) == {"pairs"}
    assert kinds["ablation"].empty and kinds["gain"].empty and "p_holm" in kinds["ablation"]


def test_a_table_without_finished_runs_gives_empty_tables_with_their_columns(runs):
    runs = without_number(runs, "seed >= 0", "missing")
    found = analyse(run_table(runs), COMPARISON, METRICS)
    assert all(table.empty and len(table.columns) >= 8 for table in found.values())


def written(tables, folder):
    """Write tables as the suite does; return their paths."""
    for name, table in tables.items():
        assert len(write_csv(folder / f"{name}.csv", table)) == len(table)
    return [folder / f"{name}.csv" for name in tables]


def test_written_files_are_equal_for_equal_tables_and_read_back(runs, tmp_path):
    run_table(runs).write(tmp_path)
    first = written(analyse(RunTable.read(tmp_path), COMPARISON, METRICS), tmp_path / "a")
    shuffled = run_table(runs.sample(frac=1, random_state=1))
    second = written(analyse(shuffled, COMPARISON, METRICS), tmp_path / "b")
    assert [path.name for path in first] == [
        "summary.csv",
        "paired.csv",
        "ablation.csv",
        "gain.csv",
        "curves.csv",
        "best_epoch.csv",
        "differences.csv",
        "costs.csv",
        "divergence.csv",
        "noise.csv",
        "ranks.csv",
        "rank_tests.csv",
        "profiles.csv",
    ]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
