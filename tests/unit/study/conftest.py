"""A small sound study as data; tests change one thing at a time and write it to a file."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from messages import Messages

from benchmark.core.errors import ConfigError
from benchmark.study import load_study

RECIPE = {
    "label": "tinynet",
    "model": {"backbone": "resnet10t", "channels": 1},
    "sampler": {"name": "m_per_class", "params": {"samples_per_class": 4}},
    "evaluation": {"recall_at": [1, 10]},
}
STUDY = {
    "study": "small",
    "title": "A small study",
    "seeds": [0, 1],
    "losses": {"smooth_ap_wide": {"loss": "smooth_ap", "tau": 0.1}},
    "blocks": [
        {
            "name": "main",
            "datasets": ["glyphs_tiny"],
            "recipe": "tiny",
            "losses": ["smooth_ap", "smooth_ap_wide", "roadmap"],
            "batch_sizes": [16, 32],
        }
    ],
    "metrics": ["recall_at_1", "map_at_r"],
    "comparison": {"baseline": "smooth_ap", "ablation": ["smooth_ap", "roadmap"]},
}


@pytest.fixture
def study_data() -> dict[str, Any]:
    """Returns a sound study to change."""
    return copy.deepcopy(STUDY)


@pytest.fixture
def recipe_data() -> dict[str, Any]:
    """Returns a sound recipe to change."""
    return copy.deepcopy(RECIPE)


@pytest.fixture
def write_study(tmp_path: Path, recipe_data: dict[str, Any]) -> Callable[..., Path]:
    """Returns a function that writes a study (and the recipe, as it is by then) and returns its
    path."""

    def write(study: dict[str, Any] | str, name: str = "small") -> Path:
        (tmp_path / "recipes").mkdir(exist_ok=True)
        (tmp_path / "recipes" / "tiny.yaml").write_text(
            yaml.safe_dump(recipe_data, sort_keys=False)
        )
        path = tmp_path / f"{name}.yaml"
        path.write_text(study if isinstance(study, str) else yaml.safe_dump(study, sort_keys=False))
        return path

    return write


@pytest.fixture
def change(study_data: dict[str, Any], recipe_data: dict[str, Any]) -> Callable[..., Any]:
    """Returns a function that sets values at dotted places of the study, or of "recipe", and
    returns the study."""

    def change(changes: dict[str, Any]) -> dict[str, Any]:
        for place, value in changes.items():
            *above, last = place.removeprefix("recipe.").split(".")
            here: Any = recipe_data if place.startswith("recipe.") else study_data
            for part in above:
                here = here[int(part)] if part.isdigit() else here.setdefault(part, {})
            if last.isdigit():
                here.insert(int(last), value)
            else:
                here[last] = value
        return study_data

    return change


@pytest.fixture
def problems_of(
    write_study: Callable[..., Path], messages: Messages
) -> Callable[..., list[tuple[str, str]]]:
    """Returns a function that loads a study and returns (code, key) of each of its problems."""

    def problems(study: dict[str, Any] | str, name: str = "small") -> list[tuple[str, str]]:
        with pytest.raises(ConfigError) as caught:
            load_study(write_study(study, name))
        return messages(caught.value)

    return problems
