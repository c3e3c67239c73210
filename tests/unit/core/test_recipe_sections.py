"""Sections of a recipe become their dataclasses, nested ones included, with the defaults filled
in."""

from __future__ import annotations

import pytest

from benchmark.core.options import build
from benchmark.core.recipe import QueryExpansionConfig, Recipe, check_recipe

LEAST = {"model": {"backbone": "test_resnet"}, "sampler": {"name": "random"}}


def test_recipe_that_names_neither_has_no_memory_no_parts_and_no_expansion():
    recipe = build(Recipe, LEAST, "recipe")
    assert recipe.memory.size is None
    assert recipe.training.micro_batch is None
    assert recipe.evaluation.query_expansion is None
    assert recipe.evaluation.whitening is None


def test_mapping_inside_a_section_becomes_its_dataclass():
    recipe = build(
        Recipe,
        {**LEAST, "evaluation": {"query_expansion": {"alpha": 2.0, "k": 10}, "whitening": 64}},
        "recipe",
    )
    config = recipe.evaluation
    assert config.query_expansion == QueryExpansionConfig(alpha=2.0, k=10)
    assert config.whitening == 64
    assert config.every == 1


@pytest.mark.parametrize("milestones", [[-1], [5, 3], [2, 2]])
def test_milestones_rise_from_the_first_epoch(milestones):
    recipe = build(
        Recipe, {**LEAST, "schedule": {"name": "step", "milestones": milestones}}, "recipe"
    )
    (problem,) = (each for each in check_recipe(recipe) if each.key == "schedule.milestones")
    assert "do not rise from 0" in problem.message
