"""Specifications edited by hand: every problem is named at once, and nothing starts."""

from __future__ import annotations

import json

import pytest
from tiny_runs import tiny_spec, write_spec_in

from benchmark.core.errors import ConfigError
from benchmark.core.records import SPEC, RunSpec
from benchmark.study import load_study
from benchmark.study.grid import expand
from benchmark.training.run import train


def test_a_specification_edited_into_nonsense_names_every_problem_and_starts_nothing(tmp_path):
    path = write_spec_in(tmp_path, tiny_spec())
    data = json.loads(path.read_text())
    data["batch_size"] = "32"
    data["recipe"]["training"]["epochs"] = -1
    data["recipe"]["optimizer"]["lrate"] = 1.0
    del data["recipe"]["sampler"]
    path.write_text(json.dumps(data))
    with pytest.raises(ConfigError) as caught:
        train(path)
    text = str(caught.value)
    for part in (
        "batch_size",
        "recipe.training.epochs",
        "lrate",
        "recipe.sampler  Field required",
        "specs STUDY",
    ):
        assert part in text
    assert [entry.name for entry in tmp_path.iterdir()] == [SPEC]


def test_numbers_and_keys_that_no_study_would_have_written_are_all_named(tmp_path):
    path = write_spec_in(tmp_path, tiny_spec())
    data = json.loads(path.read_text())
    data |= {"batch_size": 32.0, "seed": -1}
    data["dataset"]["path"] = "/somewhere"
    data["recipe"]["training"] |= {"epochs": 1.0, "threads": 1.0}
    data["recipe"]["optimizer"] |= {"lr": -1.0, "weight_decay": -1.0}
    data["recipe"]["evaluation"]["recall_at"] = []
    path.write_text(json.dumps(data))
    with pytest.raises(ConfigError) as caught:
        train(path)
    places = {problem.key for problem in caught.value.problems[:-1]}
    training = ("recipe.training.epochs", "recipe.training.threads")
    optimizer = ("lr", "weight_decay")
    assert places == {
        "batch_size",
        "seed",
        "dataset.path",
        "recipe.evaluation.recall_at",
        *training,
    } | {f"recipe.optimizer.{name}" for name in optimizer}
    assert "unknown key 'path'" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"seed": 1.0}, "seed"),
        ({"seed": 1}, "run_id  'glyphs_tiny/test_resnet/smooth_ap/bs32/seed0' is not the name"),
        ({"batch_size": 16}, "which is 'glyphs_tiny/test_resnet/smooth_ap/bs16/seed0'"),
        ({"setting": "other"}, "which is 'glyphs_tiny/other/smooth_ap/bs32/seed0'"),
        ({"run_id": "../test_resnet/smooth_ap/bs32/seed0"}, "dataset.label  String should match"),
        ({"run_id": ""}, "dataset.label  String should match"),
    ],
)
def test_a_specification_under_a_name_that_is_not_its_own_starts_nothing(changes, named, tmp_path):
    path = write_spec_in(tmp_path, tiny_spec())
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(ConfigError) as caught:
        train(path)
    assert len(caught.value.problems) == 2
    assert named in str(caught.value.problems[0])
    assert [entry.name for entry in tmp_path.iterdir()] == [SPEC]


@pytest.mark.parametrize("name", ["roadmap", "listwise"])
def test_specifications_that_studies_write_are_accepted(name, tmp_path):
    for spec in {run.spec.setting: run.spec for run in expand(load_study(name)).values()}.values():
        assert RunSpec.read(write_spec_in(tmp_path, spec)) == spec
