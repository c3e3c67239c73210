"""The regression check itself: sound runs pass, and a planted drift is found and told in full.

``glyphs/`` holds real runs: 'python -m benchmark run' trained ``glyph_seeds.yaml`` once. Copies of
the study with fewer seeds gave the frozen values (seeds 0 to 3, 'freeze') and the tables (seeds 4
to 7, 'collect'). When runs.csv gets other columns, make all of them again.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_up_results import grid_of, long_table, run_table
from reference_checks import drift_report

from benchmark.published.loading import load_papers
from benchmark.runs.run_table import RunTable
from benchmark.study import load_study
from benchmark.study.grid import expand
from benchmark.verdicts.frozen import freeze, load_frozen

REAL = Path(__file__).with_name("glyphs")
OTHER_SEEDS = range(4, 8)


@pytest.fixture
def runs() -> RunTable:
    return RunTable.read(REAL)


@pytest.fixture
def frozen():
    return load_frozen(REAL / "frozen.csv")


def test_the_real_runs_are_those_of_the_study(runs, frozen):
    study = load_study(str(REAL / "glyph_seeds.yaml"))
    runs_of_study = expand(study).items()
    specified = {name for name, run in runs_of_study if run.spec.seed in OTHER_SEEDS}
    assert set(runs.runs["run_id"]) == specified
    found = {(metric, sample.n) for (_, _, metric), sample in frozen.items()}
    assert found == {("recall_at_1", 4), ("map_at_r", 4)}


def test_real_runs_with_other_seeds_pass(runs, frozen):
    assert drift_report(runs, frozen=frozen) == ""


def test_frozen_runs_are_read_back_as_they_were(runs, frozen, tmp_path):
    freeze(runs, tmp_path / "frozen.csv", metrics=["map_at_r", "recall_at_1"])
    again = load_frozen(tmp_path / "frozen.csv")
    assert set(again) == set(frozen)
    scores = runs.test_scores("last", ["map_at_r", "recall_at_1"])
    values = sorted(value for sample in again.values() for value in sample.by_seed.values())
    assert values == sorted(100 * scores["value"])


def test_a_planted_drift_is_found_with_cell_values_counts_and_rule(runs, frozen):
    scores = runs.scores.copy()
    planted = scores["run_id"].str.contains("/smooth_ap/") & (scores["metric"] == "recall_at_1")
    scores.loc[planted, "value"] -= 0.2
    report = drift_report(replace(runs, scores=scores), frozen=frozen)
    (line,) = [line for line in report.splitlines() if line.startswith("glyphs_tiny/")]
    assert line.startswith("glyphs_tiny/test_resnet_smoke/smooth_ap/bs32 test recall_at_1")
    assert "ours " in line
    assert "frozen " in line
    assert line.count("n 4)") == 2
    assert "drifted low" in line
    assert "rule: reproduced" in report


def test_a_planted_drift_from_a_published_number_is_found():
    runs = long_table({"fast_ap": 0.55}, dataset="cub", setting="resnet50", batch_sizes=(128,))
    numbers = load_papers().asked(["roadmap2021v2/table5"])
    grid = grid_of(runs)
    report = drift_report(run_table(runs), published=numbers, grid=grid)
    assert "cub/resnet50/fast_ap/bs128 test recall_at_1" in report
    assert "61.28 (sd 0.37, n 5)" in report
