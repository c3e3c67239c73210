"""An option of a loss that has no default is asked for before anything starts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmark.core.errors import ConfigError
from benchmark.losses.catalogue import load_catalogue
from benchmark.study import load, load_study

KEY = "lambda_val"


@pytest.fixture(autouse=True)
def option_without_default(monkeypatch):
    """Take the default of an option of ROADMAP away."""
    plain = load_catalogue()
    changed = {**plain, "roadmap": replace(plain["roadmap"], options=[[KEY, "float", {}]])}
    monkeypatch.setattr(load, "load_catalogue", lambda: changed)


def test_a_study_without_it_is_refused(study_data, write_study):
    with pytest.raises(ConfigError) as caught:
        load_study(write_study(study_data))
    (problem,) = map(str, caught.value.problems)
    assert problem.startswith("blocks.0.losses (line ")
    assert f"'roadmap' needs the option '{KEY}', which has no default" in problem


def test_a_recipe_may_give_it(study_data, recipe_data, write_study):
    recipe_data["losses"] = {"roadmap": {KEY: 1.0}}
    (block,) = load_study(write_study(study_data)).blocks
    assert block.losses[2].params == {KEY: 1.0}


def test_a_variant_of_the_study_may_give_it(study_data, write_study):
    study_data["losses"]["own"] = {"loss": "roadmap", KEY: 1.0}
    study_data["blocks"][0]["losses"] = ["smooth_ap", "smooth_ap_wide", "own"]
    study_data["comparison"].pop("ablation")
    (block,) = load_study(write_study(study_data)).blocks
    assert block.losses[2].params == {KEY: 1.0}
