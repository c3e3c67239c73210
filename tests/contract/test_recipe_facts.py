"""A new field of a recipe needs a row beside the papers: told here at once, by its name."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

from benchmark.core.recipe import Recipe
from benchmark.papers.paper import read_facts
from benchmark.study.data_files import PACKAGE, paper_folders

RECIPES = Path(__file__).parents[2] / "workflow" / "config" / "recipes"
OPEN = ("sampler.params",)  # its keys are the sampler's


def own_facts():
    problems: list[str] = []
    found = [fact for folder in paper_folders().values() for fact in read_facts(folder, problems)]
    assert not problems
    return found


def without_row(recipe, items):
    facts = [fact for fact in (*read_facts(PACKAGE, []), *own_facts()) if fact.is_of(recipe)]
    return [item for item in items if not any(fact.is_about(item) for fact in facts)]


ITEMS = [
    f"{section}.{field.name}"
    for section, kind in get_type_hints(Recipe).items()
    for field in fields(kind)
    if f"{section}.{field.name}" not in OPEN
]
OF_PAPERS = sorted(
    path.stem
    for path in RECIPES.glob("*.yaml")
    if any(fact.is_of(path.stem) for fact in own_facts() if fact.recipe != "*")
)


@pytest.mark.parametrize("recipe", OF_PAPERS)
def test_every_field_of_a_recipe_has_a_row_in_a_ledger(recipe):
    missing = without_row(recipe, ITEMS)
    folder = PACKAGE
    assert not missing, f"{', '.join(missing)}: add a row to {folder / 'fidelity.csv'}"


def test_a_field_without_a_row_is_named():
    assert len(OF_PAPERS) > 20
    assert without_row(OF_PAPERS[0], ["model.backbone", "model.made_up"]) == ["model.made_up"]
