"""All statistics of a made-up study: tests and their families, divergence, costs, noise."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
from made_up_results import long_table, made_up_runs, made_up_study, run_table, without_number
from statsmodels.stats.proportion import proportion_confint

from benchmark.core.files import write_csv
from benchmark.runs.run_table import RunTable
from benchmark.stats.intervals import diverges, p_more_divergence
from benchmark.stats.study_tables import (
    INTERACTION,
    SOURCES,
    analyse,
    best_epochs,
    costs,
    differences_by_seed,
    divergence_rates,
    learning_curves,
    noise_shares,
    shares,
)
from benchmark.study.model import Comparison, square_seeds

COMPARISON = Comparison("smooth_ap", ("smooth_ap", "sup_ap", "roadmap"), 0.05)
METRICS = ["recall_at_1", "map_at_r"]
HERE = "batch_size == 32 and metric == 'map_at_r'"


@pytest.fixture
def runs():
    means = {
        "smooth_ap": 0.50,
        "sup_ap": 0.52,
        "roadmap": 0.53,
        "fast_ap": 0.50,
    }
    return long_table(means, batch_sizes=(32, 128))


@pytest.fixture
def found(runs):
    return analyse(run_table(runs), COMPARISON, METRICS)


def test_summary_has_mean_and_spread_of_each_cell_under_both_selections(runs, found):
    query = f"loss == 'sup_ap' and {HERE} and selection == 'last'"
    values = runs.query(query)["value"]
    row = found["summary"].query(query).iloc[0]
    assert len(found["summary"]) == 4 * 2 * 2 * 2
    assert row["n"] == 5
    assert row["mean"] == pytest.approx(values.mean())
    assert row["sd"] == pytest.approx(values.std())


def test_every_pair_is_tested_once_and_a_family_is_one_dataset_and_metric(found):
    table = found["paired"]
    counts = table.groupby(["batch_size", "metric", "kind"]).size().unstack()
    assert (counts["baseline"] == 3).all()
    assert (counts["pairs"] == 6).all()
    assert not (table["loss"] == table["against"]).any()
    family = table.query("kind == 'baseline' and metric == 'map_at_r'")
    assert set(family["family_size"]) == {6}  # three losses at two batch sizes
    assert family["family"].unique().tolist() == ["baseline: glyphs test map_at_r"]
    assert family["p_holm"].min() == pytest.approx(min(6 * family["p"].min(), 1))


def test_ablation_steps_follow_the_order_and_end_with_the_total(found):
    steps = found["ablation"].query(HERE)[["step", "loss", "against"]]
    assert steps.to_numpy().tolist() == [
        ["1", "sup_ap", "smooth_ap"],
        ["2", "roadmap", "sup_ap"],
        ["total", "roadmap", "smooth_ap"],
    ]


def test_diverged_and_missing_runs_are_counted_and_left_out_of_every_number(runs):
    runs = without_number(runs, "loss == 'roadmap' and batch_size == 32 and seed == 0", "diverged")
    runs = without_number(runs, "loss == 'roadmap' and batch_size == 32 and seed == 1", "missing")
    found = analyse(run_table(runs), COMPARISON, METRICS)
    where = "loss == 'roadmap' and batch_size == 32"
    row = found["summary"].query(where).iloc[0]
    assert row["n"] == 3
    assert row["n_diverged"] == 1
    assert row["n_absent"] == 1
    test = found["paired"].query(f"kind == 'baseline' and {where}").iloc[0]
    assert test["n"] == 3
    assert test["note"] == "3 common seeds of 3 and 5"


def test_one_seed_gives_differences_and_no_test():
    runs = long_table({"smooth_ap": 0.5, "sup_ap": 0.6}, seeds=1)
    found = analyse(run_table(runs), COMPARISON, METRICS)["paired"]
    assert found["difference"].notna().all()
    assert found["p_holm"].isna().all()
    assert not found["significant"].any()


def test_an_unknown_baseline_leaves_the_pairs(runs):
    kinds = analyse(run_table(runs), Comparison("margin", (), 0.05), METRICS)
    assert set(kinds["paired"]["kind"]) == {"pairs"}
    assert kinds["ablation"].empty
    assert "p_holm" in kinds["ablation"]


def test_a_table_without_finished_runs_gives_empty_tables_with_their_columns(runs):
    runs = without_number(runs, "seed >= 0", "missing")
    found = analyse(run_table(runs), COMPARISON, METRICS)
    for table in found.values():
        assert table.empty
        assert len(table.columns) >= 8


def test_written_files_are_equal_for_equal_tables_and_read_back(runs, tmp_path):
    run_table(runs).write(tmp_path)
    shuffled = run_table(runs.sample(frac=1, random_state=1))
    tables = {"read": RunTable.read(tmp_path), "shuffled": shuffled}
    files = {}
    for name, table in tables.items():
        folder = tmp_path / name
        for file, rows in analyse(table, COMPARISON, METRICS).items():
            write_csv(folder / f"{file}.csv", rows)
        files[name] = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert files["read"] == files["shuffled"]
    assert len(files["read"]) == 13


CELL = "loss == 'sup_ap' and batch_size == 32"


@pytest.fixture
def with_costs():
    return made_up_runs(made_up_study(), bad={("sup_ap", 32, 4): "diverged"})


def test_curves_are_the_mean_of_each_epoch_of_the_first_metric(with_costs):
    curves = learning_curves(run_table(with_costs), ["map_at_r", "recall_at_1"])
    assert set(curves["metric"]) == {"map_at_r"}
    point = f"{CELL} and epoch == 3"
    scores = with_costs.query(f"{point} and metric == 'map_at_r' and selection == 'curve'")
    row = curves.query(point).iloc[0]
    assert row["n"] == 4
    assert row["mean"] == pytest.approx(scores["value"].mean())
    assert row["sd"] == pytest.approx(scores["value"].std())


def test_the_first_metric_with_values_is_the_one_of_the_curves(with_costs):
    curves = learning_curves(run_table(with_costs), ["recall_at_7", "map"])
    assert set(curves["metric"]) == {"map"}


def test_best_epochs_compare_the_selections_run_by_run(with_costs):
    here = f"{CELL} and metric == 'map_at_r'"
    row = best_epochs(run_table(with_costs), METRICS).query(here).iloc[0]
    scores = with_costs.query(here).pivot_table(
        index="seed", columns="selection", values="value", aggfunc="last"
    )
    gains = scores["best"] - scores["last"]
    assert row["n"] == 4
    assert row["difference"] == pytest.approx(gains.mean())
    assert row["difference"] >= 0


def test_differences_need_the_same_seed_of_the_baseline(with_costs):
    headline = run_table(with_costs).test_scores("last", METRICS)
    table = differences_by_seed(headline, "smooth_ap")
    row = table.query(f"{CELL} and metric == 'map_at_r'")
    assert row["seed"].tolist() == [0, 1, 2, 3]
    assert (row["difference"] == row["value"] - row["value_against"]).all()
    assert "smooth_ap" not in set(table["loss"])
    assert set(table["against"]) == {"smooth_ap"}
    assert differences_by_seed(headline, None).empty


def test_the_share_of_the_loss_is_its_time_over_that_of_a_step(with_costs):
    row = costs(run_table(with_costs)).query(CELL).iloc[0]
    step_ms = 1000 * 32 / row["images_per_second"]
    assert row["loss_share"] == pytest.approx(row["loss_ms"] / step_ms)
    assert row["loss_ms"] > row["loss_ms_minimum"]
    assert row["loss_ms"] < row["loss_ms_maximum"]
    assert row["n"] == 4
    assert pd.isna(row["peak_gpu_mb"])
    assert row["peak_rss_mb"] == 610


def test_a_network_that_is_not_trained_has_no_cost_of_training(with_costs):
    speed = (with_costs["loss"] == "roadmap") & (with_costs["metric"] == "images_per_second")
    with_costs.loc[speed, "value"] = 0.0
    found = costs(run_table(with_costs))
    assert "roadmap" not in set(found["loss"])


OF_TWO = Comparison("base", ("base", "good"), 0.05)


def _analysed(diverged: str) -> dict[str, pd.DataFrame]:
    runs = long_table({"base": 0.5, "good": 0.7}, metrics=("recall_at_1",))
    runs = without_number(runs, diverged, "diverged")
    return analyse(run_table(runs), OF_TWO, ["recall_at_1"])


@pytest.mark.parametrize("seeds", ["seed < 3", "seed < 5"], ids=["three of five", "all"])
def test_the_better_score_of_a_loss_that_diverges_wins_nothing(seeds):
    found = _analysed(f"loss == 'good' and {seeds}")
    for name in ("paired", "ablation"):
        for row in found[name].itertuples():
            assert row.lost == "good"
            assert not row.significant


def test_one_diverged_run_of_five_decides_nothing():
    row = _analysed("loss == 'good' and seed == 0")["paired"].iloc[0]
    assert row["lost"] == ""
    assert row["significant"]
    assert row["n"] == 4


def test_two_losses_that_diverge_decide_nothing():
    assert set(_analysed("seed < 3")["paired"]["lost"]) == {""}


def test_missing_and_failed_runs_have_not_ended():
    runs = long_table({"base": 0.5, "good": 0.7}, metrics=("recall_at_1",))
    runs = without_number(runs, "loss == 'good' and seed < 3", "failed")
    found = analyse(run_table(runs), OF_TWO, ["recall_at_1"])["divergence"].set_index("loss")
    assert found["n_ended"].to_dict() == {"base": 5, "good": 2}
    assert found["n_diverged"].tolist() == [0, 0]


def test_the_interval_is_that_of_clopper_and_pearson():
    study = made_up_study(losses=("smooth_ap",), batch_sizes=(32,))
    bad = {("smooth_ap", 32, seed): "diverged" for seed in (0, 3)}
    (found,) = divergence_rates(run_table(made_up_runs(study, bad=bad))).itertuples()
    low, high = proportion_confint(2, 5, method="beta")
    assert found.low == pytest.approx(low)
    assert found.high == pytest.approx(high)
    assert found.n_diverged == 2
    assert found.n_ended == 5
    assert found.rate == 0.4
    assert not found.diverges


@pytest.mark.parametrize(
    ("diverged", "runs", "shown"),
    [
        (1, 1, False),
        (1, 2, False),
        (2, 2, True),
        (1, 3, False),
        (2, 3, True),
        (2, 5, False),
        (3, 5, True),
        (0, 0, False),
    ],
)
def test_few_runs_show_divergence_only_when_most_of_them_diverge(diverged, runs, shown):
    assert diverges(diverged, runs) is shown


def test_four_of_five_against_none_of_five_is_more_divergence():
    assert p_more_divergence((4, 5), (0, 5)) == pytest.approx(5 / 210)  # hypergeometric tail
    assert p_more_divergence((1, 2), (0, 2)) == pytest.approx(0.5)


SIZE = 6


def _square(weights, order, augmentation, rest, rng):
    index = np.add.outer(np.arange(SIZE), np.arange(SIZE)) % SIZE
    of_weights = weights * rng.standard_normal(SIZE)
    of_order = order * rng.standard_normal(SIZE)
    of_augmentation = augmentation * rng.standard_normal(SIZE)
    of_rest = rest * rng.standard_normal((SIZE, SIZE))
    return of_weights[:, None] + of_order + of_augmentation[index] + of_rest


def test_every_pair_of_sources_meets_once():
    runs = [dataclasses.asdict(square_seeds(number, SIZE)) for number in range(SIZE**2)]
    table = pd.DataFrame(runs)
    for pair in itertools.combinations(("weights", "order", "augmentation"), 2):
        assert not table[[*pair]].duplicated().any()


def test_a_single_source_has_the_whole_share_and_equal_runs_have_none():
    for source in range(3):
        effects = np.eye(4)[source]
        found = shares(_square(*effects, np.random.default_rng(0)))
        assert found["share"][source] == pytest.approx(1.0)
    of_equal_runs = shares(np.full((4, 4), 0.7))
    assert of_equal_runs["share"].tolist() == [0.0] * 4


def test_shares_sum_to_one_and_lie_in_their_intervals():
    found = shares(_square(1.0, 0.5, 0.2, 0.5, np.random.default_rng(3)))
    assert found["share"].sum() == pytest.approx(1.0)
    assert found["source"].tolist() == [*SOURCES, INTERACTION]
    ends = found[["low", "share", "high"]].to_numpy()
    assert (np.diff(ends) >= 0).all()
    assert ends.min() >= 0
    assert ends.max() <= 1


def test_intervals_cover_the_true_shares():
    true = np.array([1.0, 0.25, 0.04, 0.25]) / 1.54
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(300):
        found = shares(_square(1.0, 0.5, 0.2, 0.5, rng))
        covered.append((found["low"] <= true) & (true <= found["high"]))
    assert (np.mean(covered, axis=0) > 0.9).all()  # 95% in theory, Monte Carlo error 1.3 points


@pytest.fixture
def squares():
    """A square of 4 x 4 runs whose scores depend on the initial weights and on nothing else."""
    table = run_table(long_table({"base": 0.5, "good": 0.6}, seeds=16, metrics=("map",)))
    runs = table.runs.copy()
    scores = table.scores.copy()
    seeds = pd.DataFrame([dataclasses.asdict(square_seeds(int(seed), 4)) for seed in runs["seed"]])
    runs = runs.join(seeds.add_prefix("recipe.seeds."))
    weights = runs.set_index("run_id")["recipe.seeds.weights"]
    scores["value"] = 0.5 + 0.01 * scores["run_id"].map(weights)
    return RunTable(runs, scores)


def test_a_study_with_a_square_has_the_shares_of_each_loss(squares):
    found = noise_shares(squares, ["map"]).set_index(["loss", "source"])
    assert len(found) == 8
    of_weights = found.loc[("good", "initial weights")]
    assert of_weights["share"] == pytest.approx(1.0)
    assert of_weights["sd"] == pytest.approx(0.01 * np.sqrt(5 / 3))
    assert set(found["runs"]) == {16}


def test_a_square_with_a_hole_has_no_shares(squares):
    of_base = squares.runs["run_id"].iloc[0]
    others = squares.scores["run_id"] != of_base
    table = RunTable(squares.runs, squares.scores[others])
    assert set(noise_shares(table, ["map"])["loss"]) == {"good"}


def test_runs_of_a_square_are_no_independent_seeds(squares):
    """They share seeds, so that the usual intervals and tests would claim too much."""
    found = analyse(squares, Comparison("base", (), 0.05), ["map"])
    assert found["summary"]["ci_low"].isna().all()
    assert found["summary"]["mean"].notna().all()
    assert found["paired"].empty
