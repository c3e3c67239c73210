"""Features of a challenger are those of a field, or it is said which check failed."""

from __future__ import annotations

import dataclasses
import os

import numpy as np
import pytest
from made_up_fields import made_up_field, made_up_tables, write_features

from benchmark.cli.own import features_said, params_of_features
from benchmark.core.errors import ConfigError
from benchmark.runs.field import have_equal_bits, read_field
from benchmark.runs.run_table import RunTable
from benchmark.stats.budgets import outside_of_seeds
from benchmark.study import load_study
from benchmark.study.manifest import range_problems
from benchmark.study.own import Challenged, write_challenge, write_one_loss

GAP = """
from dataclasses import dataclass

from benchmark.losses import LOSSES
from benchmark.losses.base import Loss


@LOSSES.register("gap", display="Gap", paper="none", kind="pair", accepts_references=False)
class Gap(Loss):
    @dataclass(frozen=True, kw_only=True)
    class Config:
        pass
"""


@pytest.fixture
def field(tmp_path):
    """Return a field of features that stay in ``mine.npz``."""
    path = write_features(tmp_path / "mine.npz")
    return read_field(made_up_field(tmp_path / "field", {"file": str(path)}))


def rows(path):
    return np.load(path)["embeddings"]


def test_the_same_file_has_equal_bits(field, tmp_path):
    params = params_of_features(field, tmp_path / "mine.npz", None)
    assert have_equal_bits(field, params)
    assert features_said(field, params, "1", tmp_path / "again") == "same features"


def test_rounded_rows_are_not_refused_and_not_equal(field, tmp_path):
    rounded = rows(tmp_path / "mine.npz").astype("float16").astype("float32")
    path = write_features(tmp_path / "rounded.npz", embeddings=rounded)
    assert not have_equal_bits(field, params_of_features(field, path, None))


OTHERS = {
    "names": {"names": np.array([f"other{number}" for number in range(320)])},
    "labels": {"labels": np.arange(320) % 4 + 4 * (np.arange(320) % 8 > 3) + 1},
    "split": {"split": np.where(np.arange(320) % 8 < 5, "train", "test")},
    "shape": {"embeddings": np.random.default_rng(0).standard_normal((320, 7))},
    "committed rows": {"embeddings": np.random.default_rng(1).standard_normal((320, 6))},
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_differs_is_named(field, tmp_path, what):
    path = write_features(tmp_path / "other.npz", **OTHERS[what])
    with pytest.raises(ConfigError) as caught:
        have_equal_bits(field, params_of_features(field, path, None))
    (problem,) = caught.value.problems
    assert what in problem.message


def test_all_that_differs_is_named_at_once(field, tmp_path):
    changes = OTHERS["names"] | OTHERS["split"] | OTHERS["committed rows"]
    path = write_features(tmp_path / "other.npz", **changes)
    with pytest.raises(ConfigError) as caught:
        have_equal_bits(field, params_of_features(field, path, None))
    assert len(caught.value.problems) == 3


def test_one_turned_row_is_seen_if_it_is_committed(field, tmp_path):
    numbers = np.load(field.folder / "rows.npz")["numbers"]
    turned = rows(tmp_path / "mine.npz").copy()
    turned[numbers[7]] = -turned[numbers[7]]
    path = write_features(tmp_path / "other.npz", embeddings=turned)
    with pytest.raises(ConfigError, match=r"1 of 256 .* \(smallest: -1\.0000\)"):
        have_equal_bits(field, params_of_features(field, path, None))


def test_features_are_asked_for_where_the_field_has_none(field):
    with pytest.raises(ConfigError, match="has no features"):
        params_of_features(field, None, None)


def test_features_that_travel_need_not_be_given(tmp_path):
    path = write_features(tmp_path / "mine.npz")
    folder = made_up_field(tmp_path / "field", {"file": str(path)}, with_features=True)
    path.unlink()
    field = read_field(folder)
    assert have_equal_bits(field, params_of_features(field, None, None))


def test_features_are_of_no_use_to_a_field_of_images(tmp_path):
    field = read_field(made_up_field(tmp_path / "field"))
    assert params_of_features(field, None, None) == {}
    with pytest.raises(ConfigError, match="no field of features"):
        params_of_features(field, tmp_path / "mine.npz", None)


def run_again(shift):
    """Return the final runs of one loss after all trials, with their scores moved."""
    _, final = made_up_tables()
    runs = final.runs.query("loss == 'smooth_ap' and `trials.budget` == 4")
    scores = final.scores[final.scores["run_id"].isin(runs["run_id"])]
    return RunTable(runs, scores.assign(value=scores["value"] + shift)), final


@pytest.mark.parametrize(
    ("shift", "outside"),
    [
        (0.0, 0),
        (0.001, 0),
        (0.05, 1),
        (-0.05, 1),
        (np.nan, 1),
    ],
)
def test_a_loss_run_again_lies_within_its_own_seeds_or_not(shift, outside):
    problems = outside_of_seeds(*run_again(shift), "map_at_r")
    assert len(problems) == outside
    assert all("smooth_ap run again" in problem for problem in problems)


def test_a_challenge_trains_on_the_given_features_and_says_whose_they_are(field, tmp_path):
    loss = tmp_path / "gap.py"
    loss.write_text(GAP)
    params = params_of_features(field, tmp_path / "mine.npz", None)
    against = Challenged(field.folder, field.manifest, params, "equal up to rounding")
    path, _ = write_challenge(loss, 4, against, tmp_path / "results")
    text = path.read_text()
    assert f"file: {tmp_path / 'mine.npz'}" in text
    assert "Gap against the field, equal up to rounding" in text
    assert os.path.isfile(path.parent / "recipes" / "tiny.yaml")


def test_other_ranges_are_named(field, tmp_path):
    params = params_of_features(field, tmp_path / "mine.npz", None)
    path = write_one_loss(
        Challenged(field.folder, field.manifest, params), "smooth_ap", tmp_path / "one.yaml"
    )
    study = load_study(path)
    assert [*range_problems(field.manifest, study)] == []
    ranges = {**field.manifest.ranges}
    ranges["smooth_ap"] = ranges["smooth_ap"] | {"losses.tau": {"log": [1.0, 2.0]}}
    changed = dataclasses.replace(field.manifest, ranges=ranges)
    (problem,) = range_problems(changed, study)
    assert "trials of smooth_ap draw losses.tau" in problem
