"""Sections of a recipe become their dataclasses, nested ones included, with the defaults filled
in."""

from __future__ import annotations

from benchmark.core.recipe import QueryExpansionConfig, complete_recipe

LEAST = {"model": {"backbone": "test_resnet"}, "sampler": {"name": "random"}}


def test_recipe_that_names_neither_has_no_memory_no_parts_and_no_expansion():
    recipe = complete_recipe(LEAST)
    assert recipe.memory.size is None
    assert recipe.training.micro_batch is None
    assert recipe.evaluation.query_expansion is None
    assert recipe.evaluation.whitening is None


def test_mapping_inside_a_section_becomes_its_dataclass():
    recipe = complete_recipe(
        {**LEAST, "evaluation": {"query_expansion": {"alpha": 2.0, "k": 10}, "whitening": 64}}
    )
    config = recipe.evaluation
    assert config.query_expansion == QueryExpansionConfig(alpha=2.0, k=10)
    assert config.whitening == 64
    assert config.every == 1
