"""Recipe files: found beside the study or in the repository, validated, overlaid and completed.

A backbone has to exist, and a recipe's inputs are those that its pretrained weights know. Both come
from a list; timm, whose import takes seconds, is asked for what is not on it.
"""

import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from benchmark.core.backbones import ARCHITECTURES, WEIGHTS, WeightFacts
from benchmark.core.documents import Document, nearest_file, read_document
from benchmark.core.errors import ConfigError, Problem, failing
from benchmark.core.options import build
from benchmark.core.recipe import ModelConfig, Recipe, check_recipe
from benchmark.study.model import LABEL, ROOT, RecipeFile

WORDS = (
    "label",
    "extends",
    "source",
    "repository",
    "sources",
    "resources",
)  # they decide no number
RGB = 3


def read_recipe(name: str, study_path: Path) -> RecipeFile:
    """Return the recipe called ``name``; raise ConfigError with all its problems."""
    documents = _extended(name, _folders(study_path))
    data = dict[str, Any]()
    for document in reversed(documents):
        data = _laid_over(data, document.data)
    try:
        file = build(RecipeFile, data, name)
    except ConfigError as error:
        raise ConfigError(str(document.path), map(document.locate, error.problems)) from error
    found = unsourced(document.data, data)
    parts = {f"options.{option}": without_losses(part) for option, part in file.options.items()}
    for above, part in {"": {}, **parts}.items():
        try:
            overlay(file, part)
        except ConfigError as error:
            found += [each.below(above) for each in error.problems]
            if not above:
                break  # each option would have the same problems
    if found:
        raise ConfigError(str(document.path), map(document.locate, found))
    return file


def recipes_beside(names: Iterable[str], study_path: Path) -> list[Path]:
    """Return the files beside the study of these valid recipes, and of what they extend.

    The repository's own are left out.
    """
    beside, own = _folders(study_path)
    found = {each.path for name in names for each in _extended(name, (beside, own))}
    is_own = beside.resolve() == own
    return sorted(path for path in found if path.parent == beside and not is_own)


def _folders(study_path: Path) -> tuple[Path, Path]:
    return study_path.parent / "recipes", ROOT / "workflow" / "config" / "recipes"


def without_losses(partial: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sections of a partial recipe, which may give hyperparameters of losses as well."""
    return {key: value for key, value in partial.items() if key != "losses"}


def _extended(name: str, folders: Sequence[Path], above: tuple[str, ...] = ()) -> list[Document]:
    """Return the document of a recipe, and those of what it extends."""
    paths = [folder / f"{name}.yaml" for folder in folders if re.fullmatch(LABEL, name)]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        words = nearest_file("recipe", name, folders)
        raise ConfigError("recipe", [Problem(words, code="unknown_name")])
    document = _document(path, path.stat().st_mtime_ns)
    base = document.data.get("extends")
    if not isinstance(base, str):
        return [document]
    try:
        if base in (*above, name):
            words = f"is a circle: {' -> '.join([*above, name, base])}"
            raise ConfigError(base, [Problem(words, code="circle")])
        return [document, *_extended(base, folders, (*above, name))]
    except ConfigError as error:
        found = [
            Problem(f"{error.source}: {each}", "extends", code=each.code) for each in error.problems
        ]
        raise ConfigError(str(path), map(document.locate, found)) from error


@functools.cache
def _document(path: Path, _changed: int) -> Document:
    """Return a recipe's file, which several recipes may extend, as it was last changed."""
    return read_document(path)


def _laid_over(below: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Lay a file over what it extends; a value that is written anew loses the old one's source."""
    merged = merge(below, data)
    changed = leaves(data)
    old = below.get("sources", {})
    own = data.get("sources", {})
    if isinstance(old, dict) and isinstance(own, dict):
        kept = {key: old[key] for key in old if not any(_is_in(key, leaf) for leaf in changed)}
        merged["sources"] = kept | own
    return merged


def _is_in(key: str, section: str) -> bool:
    return key == section or key.startswith(f"{section}.")


def leaves(data: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the dotted key of every value in the parts of a recipe that decide numbers."""
    found = []
    for name, value in data.items():
        if prefix or name not in WORDS:
            key = f"{prefix}{name}"
            found += leaves(value, f"{key}.") if isinstance(value, dict) and value else [key]
    return found


def unsourced(written: dict[str, Any], data: dict[str, Any]) -> list[Problem]:
    """Return each value of a file with sources that has none, and each source without a value."""
    if "sources" not in written:
        return []
    own = written["sources"]
    keys = leaves(data)
    missing = [leaf for leaf in leaves(written) if not any(_is_in(leaf, key) for key in own)]
    idle = [key for key in own if not any(_is_in(leaf, key) for leaf in keys)]
    found = []
    for leaf in missing:
        words = f"has no source; add '{leaf}' or a section around it to sources"
        found.append(Problem(words, leaf, code="no_source"))
    for key in idle:
        words = "names no value of this recipe; write it like 'optimizer.lr'"
        found.append(Problem(words, f"sources.{key}", code="no_value"))
    return found


def overlay(below: Recipe, override: Mapping[str, Any]) -> Recipe:
    """Return a recipe with ``override`` laid over it; raise ConfigError with all problems."""
    given = {item.name: asdict(getattr(below, item.name)) for item in fields(Recipe)}
    recipe = build(Recipe, merge(given, override), "recipe")
    backbone = _backbone_problem(recipe.model)
    if found := check_recipe(recipe) + ([backbone] if backbone else input_problems(recipe)):
        raise ConfigError("recipe", found)
    return recipe


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
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


@functools.cache
def _backbone_problem(config: ModelConfig) -> Problem | None:
    """Return what is wrong with the backbone; timm settles what the list does not."""
    untrained = not config.pretrained or config.checkpoint is not None
    if config.backbone in WEIGHTS or (untrained and config.backbone in ARCHITECTURES):
        return None
    from benchmark.models.backbone import check_backbone, prepare_torchvision

    prepare_torchvision()
    try:
        check_backbone(config)
    except ConfigError as error:
        return Problem(error.problems[0].message, "model.backbone")
    return None


def input_problems(recipe: Recipe) -> list[Problem]:
    """Return where the inputs of a recipe are others than those its pretrained weights know."""
    model = recipe.model
    view = recipe.input
    if not model.pretrained or model.checkpoint is not None or model.channels != RGB:
        return []
    facts = WEIGHTS.get(model.backbone) or _facts_of_timm(model)
    side = view.image_size
    patch = facts.patch
    fixed = facts.fixed_side
    near = sorted({max(side // patch, 1) * patch, (side // patch + 1) * patch}) if patch else []
    scaled = [(scale, int(0.5 + scale * side)) for scale in recipe.evaluation.scales or ()]

    def close(given: list[float], wanted: tuple[float, ...]) -> bool:
        values = given * RGB if len(given) == 1 else given[:RGB]
        return all(map(functools.partial(math.isclose, abs_tol=5e-4), values, wanted))

    return failing(
        *(
            (
                not view.own_normalisation and not close(given, wanted),
                f"input.{key}",
                f"{given} is not the {key} that '{model.backbone}' was pretrained with; give "
                f"{[*wanted]}, or set input.own_normalisation: true where it is meant",
            )
            for key, given, wanted in (
                ("mean", view.mean, facts.mean),
                ("std", view.std, facts.std),
            )
        ),
        (
            patch and side % patch,
            "input.image_size",
            f"{side} is not a multiple of the patches of '{model.backbone}', {patch} pixels; give "
            + " or ".join(map(str, near)),
        ),
        (
            fixed and not patch and side != fixed,
            "input.image_size",
            f"{side} is not the side that '{model.backbone}' takes; give {fixed}",
        ),
        *(
            (
                size % patch if patch else fixed and size != fixed,
                "evaluation.scales",
                f"{scale:g} times {side} is {size}, which '{model.backbone}' does not take; give "
                + (f"scales that end at multiples of {patch}" if patch else "null"),
            )
            for scale, size in scaled
        ),
    )


@functools.cache
def _facts_of_timm(config: ModelConfig) -> WeightFacts:
    from benchmark.models.backbone import weight_facts

    return weight_facts(config)
