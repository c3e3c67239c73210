"""Input options that do not go together are found when the study is read, not when a run starts."""

from __future__ import annotations

import pytest

from benchmark.core.errors import ConfigError
from benchmark.study import load_study


def test_unsound_input_of_a_recipe_is_named_with_its_file(study_data, recipe_data, write_study):
    recipe_data["input"] = {"image_size": 32, "resize": 24, "scale": [2.0, 1.0]}
    with pytest.raises(ConfigError) as caught:
        load_study(write_study(study_data))
    first, second = map(str, caught.value.problems)
    assert "tiny.yaml: input.resize (line " in first
    assert "smaller than image_size 32" in first
    assert "tiny.yaml: input.scale (line " in second


def test_unsound_input_of_an_override_is_named_at_the_override(study_data, write_study):
    study_data["blocks"][0] |= {"option": "large", "override": {"input": {"resize": 100}}}
    with pytest.raises(ConfigError) as caught:
        load_study(write_study(study_data))
    (problem,) = map(str, caught.value.problems)
    assert problem.startswith("blocks.0.override.input.resize (line ")
    assert "image_size 224" in problem


@pytest.mark.parametrize(
    ("key", "value"),
    [("std", each) for each in (0.0, -1.0, 1e-320, 1e-4, 1e300, float("inf"), float("nan"))]
    + [("mean", each) for each in (1e300, float("-inf"), float("nan"))],
)
def test_a_normalisation_that_makes_no_numbers_is_no_recipe(
    key, value, study_data, recipe_data, write_study
):
    """The runs ended as diverged, which was counted as a result of the loss."""
    recipe_data["input"] = {"image_size": 32, "resize": 32, key: [value]}
    with pytest.raises(ConfigError, match=rf"tiny\.yaml: input\.{key}"):
        load_study(write_study(study_data))
