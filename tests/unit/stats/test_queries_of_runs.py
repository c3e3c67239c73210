"""Intervals over queries: classes are drawn whole, and the intervals stand in a study's tables."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
from made_up_records import made_up_result
from made_up_results import LONG_COLUMNS, run_table
from tiny_runs import tiny_spec

from benchmark.core.records import QUERIES, RESULT, SPEC, Setting
from benchmark.core.results import Metrics, QueryScores, write_query_scores
from benchmark.stats.queries import drawn_queries, drawn_scores
from benchmark.stats.study_tables import analyse
from benchmark.study.model import Comparison

LABELS = np.repeat(np.arange(12), 5)
LOSSES = ("smooth_ap", "sup_ap")
SEEDS = (0, 1)
NAME = "glyphs_1k/r10/{}/bs32/seed{}"


def average_precisions(loss: str, seed: int) -> np.ndarray:
    """Return made-up average precisions (60,): classes differ, and sup_ap is better."""
    rng = np.random.default_rng((len(loss), seed))
    lowest = {"smooth_ap": 0.2, "sup_ap": 0.3}[loss]
    of_class = np.linspace(lowest, lowest + 0.5, 12)
    scores = of_class[LABELS] + rng.normal(0, 0.05, 60)
    return np.round(np.clip(scores, 0, 1), 6)


def spec_of(loss, seed):
    tiny = tiny_spec(loss, seed=seed)
    dataset = dataclasses.replace(tiny.dataset, label="glyphs_1k", name="folder", params={})
    return dataclasses.replace(tiny, dataset=dataset, setting=Setting("r10"))


@pytest.fixture
def results(tmp_path):
    for loss, seed in itertools.product(LOSSES, SEEDS):
        spec = spec_of(loss, seed)
        folder = tmp_path / "runs" / NAME.format(loss, seed)
        scores = average_precisions(loss, seed)
        spec.write(folder / SPEC)
        metrics = Metrics({"test": {"map": float(scores.mean())}}, {})
        made_up_result(spec, metrics=metrics).write(folder / RESULT)
        kept = QueryScores(np.arange(60), LABELS, np.ones(60), {"map": scores})
        write_query_scores(folder, spec.digest, {"test": kept})
    return tmp_path


def table_of(results):
    """Return the table of runs that collecting would write."""
    rows = []
    for loss, seed in itertools.product(LOSSES, SEEDS):
        row = dict.fromkeys(LONG_COLUMNS, "") | {
            "run_id": NAME.format(loss, seed),
            "dataset": "glyphs_1k",
            "setting": "r10",
            "loss": loss,
            "base_loss": loss,
            "batch_size": 32,
            "seed": seed,
            "status": "ok",
            "split": "test",
            "selection": "last",
            "epoch": 2,
            "metric": "map",
            "value": average_precisions(loss, seed).mean(),
            "spec_digest": spec_of(loss, seed).digest,
        }
        rows.append(row)
    return run_table(pd.DataFrame(rows))


def analysed(results):
    table = table_of(results)
    draws = drawn_queries(table, results, ["map"])
    return analyse(table, Comparison("smooth_ap", (), 0.05), ["map"], draws)


def test_the_mean_over_seeds_and_differences_have_the_interval_over_classes(results):
    found = analysed(results)
    means = {}
    for loss in LOSSES:
        means[loss] = np.mean([average_precisions(loss, seed) for seed in SEEDS], axis=0)
    last = found["summary"].query("selection == 'last'").set_index("loss")
    for loss in LOSSES:
        low, high = interval(means[loss], LABELS)
        row = last.loc[loss]
        assert row["query_low"] == pytest.approx(low, abs=1e-6)
        assert row["query_high"] == pytest.approx(high, abs=1e-6)
        assert row["queries"] == 60
        assert row["classes"] == 12
    low, high = interval(means["sup_ap"] - means["smooth_ap"], LABELS)
    row = found["paired"].iloc[0]
    assert row["query_low"] == pytest.approx(low, abs=1e-6)
    assert row["query_high"] == pytest.approx(high, abs=1e-6)
    # what the classes add to both losses drops out of their difference
    alone = last.loc["sup_ap"]
    assert high - low < 0.5 * (alone["query_high"] - alone["query_low"])


def test_a_cell_of_which_a_run_kept_nothing_has_no_interval(results):
    (results / "runs" / NAME.format("sup_ap", 1) / QUERIES).unlink()
    last = analysed(results)["summary"].query("selection == 'last'").set_index("loss")
    assert np.isnan(last.loc["sup_ap", "query_low"])
    assert np.isfinite(last.loc["smooth_ap", "query_low"])


def interval(scores, classes, confidence=0.95):
    return drawn_scores({"": scores.astype(float)}, classes)[""].interval(confidence)


def test_the_mean_is_over_queries_and_inside_its_interval():
    scores = np.array([1.0, 0.0, 1.0, 1.0, 0.0])
    classes = np.array([0, 0, 1, 1, 2])
    found = drawn_scores({"map": scores}, classes)["map"]
    assert found.queries == 5
    assert found.classes == 3
    low, high = found.interval(0.95)
    assert low <= 0.6 <= high
    assert np.ptp(found.interval(0.5)) < high - low


def test_classes_whose_queries_agree_widen_the_interval():
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(40), 25)
    alone = rng.random(1000) < 0.6
    together = np.repeat(rng.random(40) < 0.6, 25)
    narrow = np.ptp(interval(alone, classes))
    wide = np.ptp(interval(together, classes))
    # 25 equal queries carry the information of one: 5 times the width.
    assert 3.5 < wide / narrow < 7


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        of_class = rng.beta(4, 2, 60)
        scores = rng.random((60, 8)) < of_class[:, None]
        low, high = interval(scores.ravel(), np.repeat(np.arange(60), 8))
        covered += low <= 4 / 6 <= high
    assert 0.88 <= covered / 200 <= 0.99  # 95% in theory, Monte Carlo error 1.5 points


def test_one_class_has_no_interval():
    assert np.isnan(interval(np.array([1.0, 0.0]), np.array([3, 3]))).all()
