"""Recipe files: found beside the study or in the repository, validated, overlaid and completed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.errors import ConfigError
from benchmark.options import problems as schema_problems
from benchmark.recipe import check_input, check_memory, complete_recipe, recipe_schema, section
from benchmark.study.documents import Document, nearest_file, read_document
from benchmark.study.format import ROOT, recipe_file_schema

_UNKNOWN_KEY = re.compile(r"^unknown key '([^']+)'")


@dataclass(frozen=True)
class RecipeFile:
    """A recipe as read: its label and sections when sound, and what is wrong with it otherwise."""

    label: str | None
    sections: dict[str, Any] | None
    problems: tuple[str, ...]


def placed(document: Document, found: list[str], prefix: str = "") -> list[str]:
    """Returns the lines of ``options.problems`` with the line of the file that each is about."""
    result = []
    for line in found:
        place, message = line.split("  ", 1)
        place = "" if place == "value" else place
        unknown = _UNKNOWN_KEY.match(message)
        if unknown:
            place = f"{place}.{unknown.group(1)}".strip(".")
        result.append(f"{prefix}{document.where(place)}  {message}")
    return result


def read_recipe(name: str, study_path: Path) -> RecipeFile:
    """Returns the recipe called ``name``, with its problems instead of an exception."""
    folders = [study_path.parent / "recipes", ROOT / "workflow" / "config" / "recipes"]
    path = next((path for folder in folders if (path := folder / f"{name}.yaml").is_file()), None)
    if path is None:
        return RecipeFile(None, None, (nearest_file("recipe", name, folders),))
    try:
        document = read_document(path)
    except ConfigError as error:
        return RecipeFile(None, None, tuple(f"{path}: {problem}" for problem in error.problems))
    found = [f"{path.name}: {problem}" for problem in document.problems]
    found += placed(document, schema_problems(recipe_file_schema(), document.data), f"{path.name}: ")
    label = document.data.get("label")
    if found:
        return RecipeFile(label if isinstance(label, str) else None, None, tuple(found))
    sections = {key: value for key, value in document.data.items() if key not in ("label", "source")}
    found = placed(document, overlay(sections, {})[1], f"{path.name}: ")
    return RecipeFile(label, None if found else sections, tuple(found))


def overlay(sections: dict[str, Any], override: dict[str, Any]) -> tuple[dict[str, Any] | None, list[str]]:
    """Returns the complete recipe with ``override`` laid over it, or None, and the override's problems."""
    merged = _merge(sections, override)
    found = schema_problems(recipe_schema(), merged)
    if found:
        return None, found
    recipe = complete_recipe(merged)
    found = [f"input.{line}" for line in check_input(section(recipe, "input"), recipe["model"]["channels"])]
    found += check_memory(recipe)
    return (None, found) if found else (recipe, [])


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Lays ``above`` over ``below``, key by key; another sampler does not inherit the parameters."""
    result = dict(below)
    for key, value in above.items():
        renamed = isinstance(value, dict) and "name" in value and "params" in below.get(key, {})
        if isinstance(value, dict) and isinstance(below.get(key), dict):
            kept = below[key]
            if renamed and value["name"] != kept.get("name"):
                kept = {}
            result[key] = _merge(kept, value)
        else:
            result[key] = value
    return result
