"""A small sound study as data; tests change one thing at a time and write it to a file."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

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
