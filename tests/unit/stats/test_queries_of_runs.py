"""Intervals over queries in the tables of a study."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
from long_tables import LONG_COLUMNS, run_table
from made_up_records import made_up_result
from tiny_runs import tiny_spec

from benchmark.core.records import QUERIES, RESULT, SPEC, Setting
from benchmark.core.results import Metrics, QueryScores, write_query_scores
from benchmark.stats.analysis import analyse
from benchmark.stats.queries import Draws, query_interval
from benchmark.study.model import Comparison

LABELS = np.repeat(np.arange(12), 5)
LOSSES, SEEDS = ("smooth_ap", "sup_ap"), (0, 1)
NAME = "glyphs_1k/r10/{}/bs32/seed{}"


def average_precisions(loss: str, seed: int) -> np.ndarray:
    """Return made-up average precisions (60,): classes differ, and sup_ap is better."""
    rng = np.random.default_rng((len(loss), seed))
    level = np.linspace(0.2, 0.7, 12)[LABELS] + 0.1 * (loss == "sup_ap")
    return np.round(np.clip(level + rng.normal(0, 0.05, 60), 0, 1), 6)


@pytest.fixture
def results(tmp_path):
    for loss, seed in itertools.product(LOSSES, SEEDS):
        tiny = tiny_spec(loss, seed=seed)
        dataset = dataclasses.replace(tiny.dataset, label="glyphs_1k", name="folder", params={})
        spec = dataclasses.replace(tiny, dataset=dataset, setting=Setting("r10"))
        folder, scores = tmp_path / "runs" / NAME.format(loss, seed), average_precisions(loss, seed)
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
        spec = tiny_spec(loss, seed=seed)
        dataset = dataclasses.replace(spec.dataset, label="glyphs_1k", name="folder", params={})
        spec = dataclasses.replace(spec, dataset=dataset, setting=Setting("r10"))
        row = dict.fromkeys(LONG_COLUMNS, "") | {
            "run_id": NAME.format(loss, seed), "dataset": "glyphs_1k", "setting": "r10",
            "loss": loss, "base_loss": loss, "batch_size": 32, "seed": seed, "status": "ok",
            "split": "test", "selection": "last", "epoch": 2, "metric": "map",
            "value": average_precisions(loss, seed).mean(), "spec_digest": spec.digest,
        }  # fmt: skip
        rows.append(row)
    return run_table(pd.DataFrame(rows))


def analysed(results):
    table = table_of(results)
    draws = Draws.read(table, results, ["map"])
    return analyse(table, Comparison("smooth_ap", (), 0.05), ["map"], draws)


def test_the_mean_over_seeds_and_differences_have_the_interval_over_classes(results):
    found = analysed(results)
    means = {loss: np.mean([average_precisions(loss, s) for s in SEEDS], axis=0) for loss in LOSSES}
    last = found["summary"].set_index(["loss", "selection"])
    for loss in LOSSES:
        expected = query_interval(means[loss], LABELS)
        row = last.loc[(loss, "last")]
        ends = row[["query_low", "query_high"]].tolist()
        assert ends == pytest.approx([expected.low, expected.high], abs=1e-6)
        assert row[["queries", "classes"]].tolist() == [60, 12]
    expected = query_interval(means["sup_ap"] - means["smooth_ap"], LABELS)
    row = found["paired"].iloc[0]
    ends = row[["query_low", "query_high"]].tolist()
    assert ends == pytest.approx([expected.low, expected.high], abs=1e-6)
    # what the classes add to both losses drops out of their difference
    alone = last.loc[("sup_ap", "last")]
    assert ends[1] - ends[0] < 0.5 * (alone["query_high"] - alone["query_low"])


def test_a_cell_of_which_a_run_kept_nothing_has_no_interval(results):
    (results / "runs" / NAME.format("sup_ap", 1) / QUERIES).unlink()
    last = analysed(results)["summary"].query("selection == 'last'").set_index("loss")
    assert np.isnan(last.loc["sup_ap", "query_low"])
    assert np.isfinite(last.loc["smooth_ap", "query_low"])
