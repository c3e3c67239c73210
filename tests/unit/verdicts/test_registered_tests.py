"""A test of verdicts is one file: it adds its columns, and decides, where it is registered."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from made_up_results import grid_of, made_up_runs, made_up_study, run_table

from benchmark.core.files import write_csv
from benchmark.core.registry import PLUGIN, import_plugin
from benchmark.published.loading import load_papers
from benchmark.stats.samples import Sample, Samples
from benchmark.verdicts.explain import explain
from benchmark.verdicts.judging import judged, pairs_of_frozen, pairs_of_numbers, read_verdicts
from benchmark.verdicts.pair_tests import TESTS
from benchmark.verdicts.pairs import PAIR, frame_of
from benchmark.verdicts.verdicts import UNFILED, VERDICT

PLUGIN_FILE = Path(__file__).parent / "plugins" / "permutation.py"
SEEDS = (0, 1, 2, 3)
RUNS = made_up_runs(made_up_study(seeds=SEEDS))
SAMPLES = Samples(run_table(RUNS))
ADDED = ["p_permutation_same", "p_permutation_beyond", "p_permutation_least"]


def pairs():
    """Return printed numbers, then runs frozen under other seeds: equal, and 5 points higher."""
    cells = [cell for cell in SAMPLES.statuses if cell.batch_size == 32][:2]
    frozen = {}
    for cell, higher in zip(cells, (0.0, 5.0), strict=True):
        now = SAMPLES.sample(cell, "test", "map")
        then = {seed + 10: score + higher for seed, score in now.by_seed.items()}
        frozen[cell, "test", "map"] = Sample(then, {"code_version": ("made up",)})
    numbers = load_papers().asked(["roadmap2021v2/table1"])
    printed = pairs_of_numbers(numbers, SAMPLES, grid_of(RUNS).candidates)
    return [*printed, *pairs_of_frozen(frozen, SAMPLES)]


@pytest.fixture
def plugin(monkeypatch):
    """Register the permutation test, for one test."""
    monkeypatch.setattr(TESTS, "_entries", {**TESTS._entries, "equivalence": TESTS["equivalence"]})
    name = f"{PLUGIN}{PLUGIN_FILE.stem}"
    import_plugin(PLUGIN_FILE)
    yield sys.modules[name]
    del sys.modules[name]


def test_every_column_of_a_pair_is_declared_and_made():
    rows = frame_of(pairs())
    assert list(rows) == list(PAIR)
    assert all(column.meaning for column in PAIR.values())
    assert not rows["theirs_by_seed"].iloc[0]
    assert set(rows["theirs_by_seed"].iloc[-1]) == {10, 11, 12, 13}
    assert set(rows["ours_by_seed"].iloc[-1]) == set(SEEDS)


def test_without_the_plugin_there_are_no_further_columns():
    assert list(judged(pairs())) == list(VERDICT)


def test_a_registered_test_adds_its_columns_and_decides_pairs_with_seeds(plugin, tmp_path):
    verdicts = judged(pairs())
    assert list(verdicts) == [*VERDICT, *ADDED]
    printed = verdicts[verdicts["source"] != "frozen"]
    assert printed[ADDED].isna().all(axis=None)
    assert not printed["reason"].str.contains("permuted").any()
    same, higher = verdicts[verdicts["source"] == "frozen"].itertuples()
    assert same.p_permutation_least == higher.p_permutation_least == 1 / 70
    assert higher.p_permutation_beyond == pytest.approx(2 * 2 / 70)
    assert "the smallest is 0.014" in higher.reason
    assert higher.verdict == "inconclusive"
    assert higher.p_holm < 0.05, "the equivalence test would call it"
    assert higher.stands is None
    written = write_csv(tmp_path / "verdicts.csv", verdicts.drop(columns=UNFILED))
    read = read_verdicts(tmp_path / "verdicts.csv")
    assert list(read) == list(written)
    assert read["p_permutation_least"].max() == pytest.approx(1 / 70)


def test_the_calculation_behind_another_test_s_verdict_is_told(plugin):
    both = pairs()
    verdicts = judged(both)
    told = explain(verdicts, verdicts.index[-1], both, run_table(RUNS))
    assert "permuted seeds" in told


def test_p_is_the_share_of_regroupings_by_hand(plugin):
    found = plugin.permuted({1: 3.0, 2: 4.0}, {3: 1.0, 4: 2.0}, 0.5)
    assert found.above == found.least == 1 / 6
    assert found.below == 1.0
    assert found.beyond == 2 / 6
    assert found.same == 1.0
    assert np.isnan(plugin.permuted({1: 3.0}, {3: 1.0, 4: 2.0}, 0.5).least)
