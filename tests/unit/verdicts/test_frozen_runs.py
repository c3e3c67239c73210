"""Freezing runs: raw values, all of them or a clear refusal."""

from __future__ import annotations

import pytest
from made_up_results import long_table, run_table, without_number

from benchmark.core.errors import ReferenceDataError
from benchmark.verdicts.frozen import freeze, load_frozen


@pytest.fixture
def runs():
    return long_table({"smooth_ap": 0.5, "sup_ap": 0.6})


def test_every_headline_score_comes_back_bit_for_bit(runs, tmp_path):
    path = tmp_path / "reference" / "study.csv"
    assert freeze(run_table(runs), path) == 10
    frozen = load_frozen(path)
    last = runs[runs["selection"] == "last"]
    for (cell, split, metric), sample in frozen.items():
        mine = last[(last["loss"] == cell.loss) & (last["metric"] == metric)]
        scores = dict(zip(mine["seed"], 100 * mine["value"], strict=True))
        assert split == "test"
        assert sample.by_seed == scores
        assert sample.versions["platform"] == ("cpu",)
        assert sample.versions["spec_digest"] == ("d",)
    assert len(frozen) == 4


@pytest.mark.parametrize("status", ["missing", "failed", "stale"])
def test_holes_are_refused_by_name_and_nothing_is_written(runs, tmp_path, status):
    runs = without_number(runs, "loss == 'sup_ap' and seed == 3", status)
    with pytest.raises(
        ReferenceDataError, match=rf"1 of 10 runs(.|\n)*glyphs/tiny/sup_ap/bs32/seed3: {status}"
    ):
        freeze(run_table(runs), tmp_path / "study.csv")
    assert not (tmp_path / "study.csv").exists()


def test_partial_accepts_holes(runs, tmp_path):
    runs = without_number(runs, "loss == 'sup_ap' and seed == 3", "missing")
    assert freeze(run_table(runs), tmp_path / "study.csv", partial=True) == 9


def test_a_diverged_run_is_kept_as_a_result_without_a_value(runs, tmp_path):
    runs = without_number(runs, "loss == 'sup_ap' and seed == 3", "diverged")
    assert freeze(run_table(runs), tmp_path / "study.csv") == 10
    lines = (tmp_path / "study.csv").read_text().splitlines()
    assert [line for line in lines if ",3,diverged,,,," in line]
    frozen = load_frozen(tmp_path / "study.csv")
    assert {cell.loss: sample.n for (cell, *_), sample in frozen.items()} == {
        "smooth_ap": 5,
        "sup_ap": 4,
    }


def test_a_study_without_scores_cannot_be_frozen(runs, tmp_path):
    runs = without_number(runs, "seed >= 0", "missing")
    with pytest.raises(ReferenceDataError, match="no finished run has a score"):
        freeze(run_table(runs), tmp_path / "study.csv", partial=True)
