"""Shares of the sources of noise: exact squares, coverage, and sources without effect."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from made_up_results import long_table, run_table

from benchmark.runs.run_table import RunTable
from benchmark.stats.study_tables import INTERACTION, SOURCES, analyse, noise_shares, shares
from benchmark.study.model import Comparison, square_seeds

SIZE = 6


def _square(weights, order, augmentation, rest, rng):
    index = np.add.outer(np.arange(SIZE), np.arange(SIZE)) % SIZE
    return (
        weights * rng.standard_normal(SIZE)[:, None]
        + order * rng.standard_normal(SIZE)[None]
        + augmentation * rng.standard_normal(SIZE)[index]
        + rest * rng.standard_normal((SIZE, SIZE))
    )


def test_every_pair_of_sources_meets_once():
    runs = [dataclasses.asdict(square_seeds(number, SIZE)) for number in range(SIZE**2)]
    for one, other in itertools.combinations(("weights", "order", "augmentation"), 2):
        assert len({(run[one], run[other]) for run in runs}) == SIZE * SIZE


@pytest.mark.parametrize("source", [0, 1, 2])
def test_a_single_source_has_the_whole_share(source):
    effects = [0.0] * 4
    effects[source] = 1.0
    found = shares(_square(*effects, np.random.default_rng(0)))
    assert found["share"][source] == pytest.approx(1.0)


def test_shares_sum_to_one_and_lie_in_their_intervals():
    found = shares(_square(1.0, 0.5, 0.2, 0.5, np.random.default_rng(3)))
    assert found["share"].sum() == pytest.approx(1.0)
    assert found["source"].tolist() == [*SOURCES, INTERACTION]
    ends = found[["low", "share", "high"]].to_numpy()
    assert (np.diff(ends) >= 0).all() and ends.min() >= 0 and ends.max() <= 1


def test_intervals_cover_the_true_shares():
    true = np.array([1.0, 0.25, 0.04, 0.25]) / 1.54
    rng = np.random.default_rng(0)
    squares = (shares(_square(1.0, 0.5, 0.2, 0.5, rng)) for _ in range(300))
    covered = [(found["low"] <= true) & (true <= found["high"]) for found in squares]
    assert (np.mean(covered, axis=0) > 0.9).all()  # 95% in theory, Monte Carlo error 1.3 points


def test_equal_runs_have_no_share_at_all():
    assert shares(np.full((4, 4), 0.7))["share"].tolist() == [0.0] * 4


@pytest.fixture
def study():
    """A square of 4 x 4 runs whose scores depend on the initial weights and on nothing else."""
    table = run_table(long_table({"base": 0.5, "good": 0.6}, seeds=16, metrics=("map",)))
    runs, scores = table.runs.copy(), table.scores.copy()
    seeds = [dataclasses.asdict(square_seeds(int(seed), 4)) for seed in runs["seed"]]
    for role in seeds[0]:
        runs[f"recipe.seeds.{role}"] = [each[role] for each in seeds]
    weights = dict(zip(runs["run_id"], runs["recipe.seeds.weights"], strict=True))
    scores["value"] = 0.5 + 0.01 * scores["run_id"].map(weights)
    return RunTable(runs, scores)


def test_a_study_with_a_square_has_the_shares_of_each_loss(study):
    found = noise_shares(study, ["map"]).set_index(["loss", "source"])
    assert len(found) == 8
    assert found.loc[("good", "initial weights"), "share"] == pytest.approx(1.0)
    assert found.loc[("good", "initial weights"), "sd"] == pytest.approx(0.01 * np.sqrt(5 / 3))
    assert set(found["runs"]) == {16}


def test_a_square_with_a_missing_run_has_no_shares(study):
    lost = study.runs["run_id"].iloc[0]
    table = RunTable(study.runs, study.scores[study.scores["run_id"] != lost])
    assert set(noise_shares(table, ["map"])["loss"]) == {"good"}


def test_runs_of_a_square_are_no_independent_seeds(study):
    """They share seeds, so that the usual intervals and tests would claim too much."""
    found = analyse(study, Comparison("base", (), 0.05), ["map"])
    assert found["summary"]["ci_low"].isna().all() and found["summary"]["mean"].notna().all()
    assert found["paired"].empty
