"""Recipe files: found beside the study or in the repository, validated, overlaid and completed."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from benchmark.core.errors import ConfigError, Problem
from benchmark.core.options import make, problems, schema_of, sound_part
from benchmark.core.recipe import Recipe, check_recipe, complete_recipe
from benchmark.study.backbones import backbone_problem, input_problems
from benchmark.study.documents import Document, nearest_file, read_document
from benchmark.study.format import LABEL, ROOT, RecipeKeys, recipe_file_schema

FILE_KEYS = tuple(item.name for item in fields(RecipeKeys))
DECIDING = ("losses", "loss_precision", "options")  # those of them that decide numbers
SCHEMA = schema_of(Recipe)


@dataclass(frozen=True)
class RecipeFile:
    """A recipe as read: its sections when it is sound, and what is wrong with it otherwise."""

    name: str
    keys: RecipeKeys
    sections: dict[str, Any] | None
    problems: tuple[Problem, ...]


def read_recipe(name: str, study_path: Path) -> RecipeFile:
    """Return the recipe called ``name``, with its problems instead of an exception."""
    document, data, found = _resolved(name, _folders(study_path), ())
    own = {key: value for key, value in data.items() if key in FILE_KEYS}
    keys: RecipeKeys = make(RecipeKeys, sound_part(schema_of(RecipeKeys), own))
    sections = {key: value for key, value in data.items() if key not in FILE_KEYS}
    if document is None:
        return RecipeFile(name, keys, None, tuple(found))
    found = found or _in_file(document, problems(recipe_file_schema(), data))
    if not found:
        wrong = overlay(sections, {})[1] + unsourced(document.data, data)
        for option, partial in keys.options.items():
            changed = overlay(sections, without_losses(partial))[1]
            wrong += [replace(each, key=f"options.{option}.{each.key}") for each in changed]
        found = _in_file(document, wrong)
    return RecipeFile(name, keys, None if found else sections, tuple(found))


def recipes_beside(names: Iterable[str], study_path: Path) -> list[Path]:
    """Return the files beside the study of these recipes, which are sound, and of what they extend.

    The repository's own are left out.
    """
    beside, own = _folders(study_path)
    found = set()
    for name in names:
        base: str | None = name
        while base is not None:
            paths = [folder / f"{base}.yaml" for folder in (beside, own)]
            path = next(path for path in paths if path.is_file())
            found |= {path} if path.parent == beside and beside.resolve() != own else set()
            base = read_document(path).data.get("extends")
    return sorted(found)


def _folders(study_path: Path) -> tuple[Path, Path]:
    return study_path.parent / "recipes", ROOT / "workflow" / "config" / "recipes"


def without_losses(partial: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sections of a partial recipe, which may give hyperparameters of losses as well."""
    return {key: value for key, value in partial.items() if key != "losses"}


def _resolved(
    name: str, folders: Sequence[Path], below: tuple[str, ...]
) -> tuple[Document | None, dict[str, Any], list[Problem]]:
    """Return (document, data laid over what the file extends, problems); None when unreadable."""
    paths = [folder / f"{name}.yaml" for folder in folders if re.fullmatch(LABEL, name)]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        return None, {}, [Problem(nearest_file("recipe", name, folders))]
    try:
        document = read_document(path)
    except ConfigError as error:
        return None, {}, [replace(problem, file=str(path)) for problem in error.problems]
    found = _in_file(document, document.problems)
    base = document.data.get("extends")
    if not isinstance(base, str):
        return document, document.data, found
    if base in (*below, name):
        words = f"is a circle: {' -> '.join([*below, name, base])}"
        return document, document.data, [*found, *_in_file(document, [Problem(words, "extends")])]
    above, data, inherited = _resolved(base, folders, (*below, name))
    if above is not None and not isinstance(data.get("sources", {}), dict):
        words = "is no mapping of places to sources"
        inherited = [*inherited, *_in_file(above, [Problem(words, "sources")])]
    if above is None or inherited:
        below_it = [Problem(str(problem), "extends") for problem in inherited]
        return document, document.data, [*found, *_in_file(document, below_it)]
    return document, _extended(data, document.data), found


def _in_file(document: Document, found: Iterable[Problem]) -> list[Problem]:
    """Return the problems with the name of the file and the line."""
    return [replace(document.locate(problem), file=document.path.name) for problem in found]


def _extended(base: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return ``data`` laid over ``base``; a value written anew loses the old one's source."""
    merged, changed = merge(base, data), leaves(data)
    sources = {
        key: source
        for key, source in base.get("sources", {}).items()
        if not any(_is_in(key, leaf) for leaf in changed)
    }
    own = data.get("sources", {})
    if isinstance(own, dict):  # anything else is the schema's to refuse
        merged["sources"] = {**sources, **own}
    return merged


def _is_in(key: str, section: str) -> bool:
    return key == section or key.startswith(f"{section}.")


def leaves(data: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the dotted key of every value in the parts of a recipe that decide numbers."""
    found = []
    for name, value in data.items():
        if prefix or name not in FILE_KEYS or name in DECIDING:
            key = f"{prefix}{name}"
            found += leaves(value, f"{key}.") if isinstance(value, dict) and value else [key]
    return found


def unsourced(written: dict[str, Any], data: dict[str, Any]) -> list[Problem]:
    """Return each value of a file with sources that has none, and each source without a value."""
    if not isinstance(written.get("sources"), dict):
        return []
    own, keys = written["sources"], leaves(data)
    missing = [leaf for leaf in leaves(written) if not any(_is_in(leaf, key) for key in own)]
    idle = [key for key in own if not any(_is_in(leaf, key) for leaf in keys)]
    return [
        Problem(f"has no source; add '{leaf}' or a section around it to sources", leaf)
        for leaf in missing
    ] + [
        Problem("names no value of this recipe; write it like 'optimizer.lr'", f"sources.{key}")
        for key in idle
    ]


def overlay(
    sections: dict[str, Any], override: dict[str, Any]
) -> tuple[Recipe | None, list[Problem]]:
    """Return the complete recipe with ``override`` laid over it, or None, and the problems."""
    merged = merge(sections, override)
    if found := problems(SCHEMA, merged):
        return None, found
    recipe = complete_recipe(merged)
    backbone = backbone_problem(recipe.model)
    found = check_recipe(recipe) + ([backbone] if backbone else input_problems(recipe))
    return (None, found) if found else (recipe, [])


def merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Lay ``above`` over ``below``, key by key; another sampler does not inherit the parameters."""
    result = dict(below)
    for key, value in above.items():
        base = below.get(key)
        if isinstance(value, dict) and isinstance(base, dict):
            renamed = "params" in base and value.get("name", base.get("name")) != base.get("name")
            result[key] = merge({} if renamed else base, value)
        else:
            result[key] = value
    return result
