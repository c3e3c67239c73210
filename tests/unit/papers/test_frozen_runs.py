"""Freezing runs: raw values, all of them or a clear refusal."""

from __future__ import annotations

import pytest
from long_tables import long_table, run_table, without_number

from benchmark.core.errors import ReferenceDataError
from benchmark.papers.frozen import freeze, load_frozen


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
        assert split == "test" and sample.by_seed == scores
        assert sample.versions["platform"] == ("cpu",) and sample.versions["spec_digest"] == ("d",)
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


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (",ok,", ",okay,", "column status: unknown status 'okay'"),
        (",32,0,", ",32,zero,", "column seed: .* unable to parse string as an integer: 'zero'"),
        ("map_at_r,0.", "map_at_r,7.", "column value: Input should be less than or equal to 1"),
    ],
)
def test_a_frozen_file_edited_by_hand_is_checked(runs, tmp_path, old, new, words):
    path = tmp_path / "study.csv"
    freeze(run_table(runs), path)
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(ReferenceDataError, match=words):
        load_frozen(path)


def test_a_loss_that_is_another_in_one_row_is_named(runs, tmp_path):
    freeze(run_table(runs), tmp_path / "frozen.csv")
    head, first, *rest = (tmp_path / "frozen.csv").read_text().splitlines()
    loss, base = first.split(",")[2:4]
    first = first.replace(f",{loss},{base},", f",{loss},zz,")
    (tmp_path / "frozen.csv").write_text("\n".join([head, first, *rest, ""]))
    with pytest.raises(ReferenceDataError, match=rf"line 3: '{loss}' is 'zz' in line 2"):
        load_frozen(tmp_path / "frozen.csv")


def test_only_frozen_runs_are_written_over(runs, tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text("study: own\n")
    with pytest.raises(ReferenceDataError, match="something else than frozen runs"):
        freeze(run_table(runs), path)
    assert path.read_text() == "study: own\n"
    freeze(run_table(runs), tmp_path / "frozen.csv")
    freeze(run_table(runs), tmp_path / "frozen.csv")


def test_a_missing_frozen_file_names_the_command(tmp_path):
    with pytest.raises(ReferenceDataError, match="python -m benchmark freeze"):
        load_frozen(tmp_path / "study.csv")
