"""Recipe files: found beside the study or in the repository, validated, overlaid and completed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmark.core.errors import ConfigError
from benchmark.core.options import problems as schema_problems
from benchmark.core.recipe import (
    Recipe,
    check_input,
    check_memory,
    check_whitening,
    complete_recipe,
    recipe_schema,
)
from benchmark.study.backbones import backbone_problem
from benchmark.study.documents import Document, nearest_file, read_document
from benchmark.study.format import ROOT, recipe_file_schema

# What a recipe file holds besides the sections of a recipe.
FILE_KEYS = (
    "label",
    "extends",
    "source",
    "sources",
    "stand_in",
    "resources",
    "losses",
    "loss_precision",
    "options",
)
_UNKNOWN_KEY = re.compile(r"^unknown key '([^']+)'")


@dataclass(frozen=True)
class RecipeFile:
    """A recipe as read: its label and sections when sound, and what is wrong with it otherwise.

    losses     {registry name: hyperparameters} that hold for this recipe
    loss_precision  {registry name: precision} of losses that do not train in the recipe's
    options    {name: partial recipe, with its own "losses"}
    sources    {place in the recipe: where its value comes from}
    stand_in   recipe that takes its place on a stand-in dataset
    resources  what one run needs, where it differs from the study's
    """

    label: str | None
    sections: dict[str, Any] | None
    problems: tuple[str, ...]
    name: str = ""
    losses: dict[str, dict[str, Any]] = field(default_factory=dict)
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    stand_in: str | None = None
    resources: dict[str, int] = field(default_factory=dict)
    loss_precision: dict[str, str] = field(default_factory=dict)


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
    document, data, found = _resolved(name, folders, ())
    if document is None:
        return RecipeFile(None, None, tuple(found), name)
    prefix = f"{document.path.name}: "
    if not found:
        found = placed(document, schema_problems(recipe_file_schema(), data), prefix)
    label = data.get("label") if isinstance(data.get("label"), str) else None
    if found:
        return RecipeFile(label, None, tuple(found), name)
    sections = {key: value for key, value in data.items() if key not in FILE_KEYS}
    options = data.get("options", {})
    found = [*overlay(sections, {})[1], *unsourced(document.data, data)]
    for option, partial in options.items():
        changes = {key: value for key, value in partial.items() if key != "losses"}
        found += [f"options.{option}.{line}" for line in overlay(sections, changes)[1]]
    return RecipeFile(
        label,
        None if found else sections,
        tuple(placed(document, found, prefix)),
        name,
        data.get("losses", {}),
        options,
        data.get("sources", {}),
        data.get("stand_in"),
        data.get("resources", {}),
        data.get("loss_precision", {}),
    )


def _resolved(
    name: str, folders: list[Path], below: tuple[str, ...]
) -> tuple[Document | None, dict[str, Any], list[str]]:
    """Returns (document, data laid over what the file extends, problems); the document is None when unreadable."""
    path = next((path for folder in folders if (path := folder / f"{name}.yaml").is_file()), None)
    if path is None:
        return None, {}, [nearest_file("recipe", name, folders)]
    try:
        document = read_document(path)
    except ConfigError as error:
        return None, {}, [f"{path}: {problem}" for problem in error.problems]
    found = [f"{path.name}: {problem}" for problem in document.problems]
    base = document.data.get("extends")
    if not isinstance(base, str):
        return document, document.data, found
    if base in (*below, name):
        words = " -> ".join([*below, name, base])
        return (
            document,
            document.data,
            [*found, f"{path.name}: {document.where('extends')}  is a circle: {words}"],
        )
    above, data, problems = _resolved(base, folders, (*below, name))
    if above is None or problems:
        lines = [f"{path.name}: {document.where('extends')}  {problem}" for problem in problems]
        return document, document.data, [*found, *lines]
    return document, _extended(data, document.data), found


def _extended(base: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Returns ``data`` laid over ``base``; a value written anew does not keep the old one's source."""
    merged = merge(base, data)
    written = leaves(data)
    kept = {
        place: source
        for place, source in base.get("sources", {}).items()
        if not any(place == leaf or place.startswith(f"{leaf}.") for leaf in written)
    }
    own = data.get("sources")
    merged["sources"] = {**kept, **own} if isinstance(own, dict) else kept
    return merged


def leaves(data: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Returns the dotted place of every value in the parts of a recipe that decide numbers."""
    found = []
    for key, value in data.items():
        if not prefix and key in FILE_KEYS and key not in ("losses", "loss_precision", "options"):
            continue
        place = f"{prefix}{key}"
        found += leaves(value, f"{place}.") if isinstance(value, dict) and value else [place]
    return found


def unsourced(written: dict[str, Any], data: dict[str, Any]) -> list[str]:
    """Returns a line for each value of a file with sources that has none, and each source without a value."""
    if "sources" not in written:
        return []
    own, places = written["sources"], leaves(data)
    lines = [
        f"{leaf}  has no source; add '{leaf}' or a section around it to sources"
        for leaf in leaves(written)
        if not any(leaf == place or leaf.startswith(f"{place}.") for place in own)
    ]
    return lines + [
        f"sources.{place}  names no value of this recipe; write it like 'optimizer.lr'"
        for place in own
        if not any(leaf == place or leaf.startswith(f"{place}.") for leaf in places)
    ]


def overlay(sections: dict[str, Any], override: dict[str, Any]) -> tuple[Recipe | None, list[str]]:
    """Return the complete recipe with ``override`` laid over it, or None, and the override's problems."""
    merged = merge(sections, override)
    found = schema_problems(recipe_schema(), merged)
    if found:
        return None, found
    recipe = complete_recipe(merged)
    found = [f"input.{line}" for line in check_input(recipe.input, recipe.model.channels)]
    found += check_memory(recipe) + check_whitening(recipe)
    backbone = backbone_problem(recipe.model)
    found += [backbone] if backbone else []
    return (None, found) if found else (recipe, [])


def merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Lays ``above`` over ``below``, key by key; another sampler does not inherit the parameters."""
    result = dict(below)
    for key, value in above.items():
        renamed = isinstance(value, dict) and "name" in value and "params" in below.get(key, {})
        if isinstance(value, dict) and isinstance(below.get(key), dict):
            kept = below[key]
            if renamed and value["name"] != kept.get("name"):
                kept = {}
            result[key] = merge(kept, value)
        else:
            result[key] = value
    return result
