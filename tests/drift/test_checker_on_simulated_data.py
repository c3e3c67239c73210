"""The regression check itself: a planted drift is found and its message holds every part; sound
runs pass."""

from __future__ import annotations

import pytest
from long_tables import long_table, run_table
from made_up_candidates import candidates_of
from reference_checks import drift_report

from benchmark.papers.frozen import freeze, load_frozen
from benchmark.papers.library import asked_numbers

MEANS = {"smooth_ap": 0.62, "sup_ap": 0.63, "roadmap": 0.64}


@pytest.fixture
def frozen(tmp_path):
    runs = long_table(MEANS, batch_sizes=(32, 128))
    freeze(run_table(runs), tmp_path / "frozen.csv")
    return load_frozen(tmp_path / "frozen.csv")


def test_sound_runs_with_other_seeds_pass(frozen):
    runs = long_table(MEANS, batch_sizes=(32, 128), seed=7)
    assert drift_report(run_table(runs), frozen=frozen) == ""


def test_a_planted_drift_is_found_with_cell_values_counts_and_rule(frozen):
    runs = long_table(MEANS, batch_sizes=(32, 128), seed=7)
    planted = (
        (runs["loss"] == "sup_ap") & (runs["batch_size"] == 128) & (runs["metric"] == "map_at_r")
    )
    runs.loc[planted, "value"] -= 0.05
    report = drift_report(run_table(runs), frozen=frozen)
    line = next(line for line in report.splitlines() if line.startswith("glyphs/"))
    assert line.startswith("glyphs/tiny/sup_ap/bs128 test map_at_r")
    assert (
        "ours 57.92 (sd" in line
        and "frozen 63.12 (sd" in line
        and line.count("n 5)") == 2
        and "drifted low" in line
    )
    assert report.count("\nglyphs/") == 1 and "rule: reproduced" in report


def test_a_planted_drift_from_a_published_number_is_found():
    runs = long_table({"fast_ap": 0.55}, dataset="cub", setting="resnet50", batch_sizes=(128,))
    numbers, grid = asked_numbers(["roadmap2021v2/table5"]), candidates_of(runs)
    report = drift_report(run_table(runs), published=numbers, candidates=grid)
    assert (
        "cub/resnet50/fast_ap/bs128 test recall_at_1" in report and "61.28 (sd 0.37, n 5)" in report
    )
