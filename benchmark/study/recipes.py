"""Read recipe files, which lie beside the study or in the repository, and lay one over another.

The backbone of a recipe must exist, and its inputs must be those of its pretrained weights. Both
are looked up in a committed list. Only names that are not on the list need timm, whose import takes
seconds.
"""

import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from benchmark.core.backbones import ARCHITECTURES, WEIGHTS
from benchmark.core.documents import Document, nearest_file, read_document
from benchmark.core.errors import ConfigError, Problem
from benchmark.core.options import build
from benchmark.core.recipe import FEATURES, ModelConfig, Recipe, check_recipe
from benchmark.study.model import LABEL, ROOT, RecipeFile

# sections that change no number
DESCRIPTIVE = ("label", "extends", "source", "repository", "sources", "resources")
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
    wrong = unsourced(document.data, data)
    overrides: dict[str, dict[str, Any]] = {"": {}}
    for option, override in file.options.items():
        overrides[f"options.{option}"] = without_losses(override)
    for key, override in overrides.items():
        try:
            overlay(file, override)
        except ConfigError as error:
            wrong += [problem.below(key) for problem in error.problems]
            if not key:
                break  # each option would have the same problems
    if wrong:
        raise ConfigError(str(document.path), map(document.locate, wrong))
    return file


def recipes_beside(names: Iterable[str], study_path: Path) -> list[Path]:
    """Return the files of these valid recipes, and of the recipes that they extend.

    Only files beside the study are returned, none of the repository.
    """
    beside, shipped = _folders(study_path)
    if beside.resolve() == shipped:
        return []
    documents = [document for name in names for document in _extended(name, (beside, shipped))]
    return sorted({document.path for document in documents if document.path.parent == beside})


def _folders(study_path: Path) -> tuple[Path, Path]:
    return study_path.parent / "recipes", ROOT / "workflow" / "config" / "recipes"


def without_losses(partial: Mapping[str, Any]) -> dict[str, Any]:
    """Return a partial recipe without its hyperparameters of losses."""
    return {key: value for key, value in partial.items() if key != "losses"}


def _extended(name: str, folders: Sequence[Path], above: tuple[str, ...] = ()) -> list[Document]:
    """Return the document of a recipe, followed by the documents of the recipes that it extends."""
    paths = [folder / f"{name}.yaml" for folder in folders if re.fullmatch(LABEL, name)]
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        message = nearest_file("recipe", name, folders)
        raise ConfigError("recipe", [Problem(message, code="unknown_name")])
    document = _document(path, path.stat().st_mtime_ns)
    base = document.data.get("extends")
    if not isinstance(base, str):
        return [document]
    try:
        if base in (*above, name):
            message = f"is a circle: {' -> '.join([*above, name, base])}"
            raise ConfigError(base, [Problem(message, code="circle")])
        return [document, *_extended(base, folders, (*above, name))]
    except ConfigError as error:
        problems = [
            Problem(f"{error.source}: {problem}", "extends", code=problem.code)
            for problem in error.problems
        ]
        raise ConfigError(str(path), map(document.locate, problems)) from error


@functools.cache
def _document(path: Path, _changed: int) -> Document:
    """Return a recipe's file, which several recipes may extend, as it was last changed."""
    return read_document(path)


def _laid_over(below: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Lay a file over the one that it extends.

    A value that the file writes again loses its source in the extended file.
    """
    merged = merge(below, data)
    old = below.get("sources", {})
    sources = data.get("sources", {})
    if isinstance(old, dict) and isinstance(sources, dict):
        changed = leaves(data)
        kept = {key: source for key, source in old.items() if not _is_within(key, changed)}
        merged["sources"] = kept | sources
    return merged


def _is_within(key: str, sections: Iterable[str]) -> bool:
    """Return whether a dotted key is one of ``sections``, or lies below one of them."""
    return any(key == section or key.startswith(f"{section}.") for section in sections)


def leaves(data: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the dotted key of every value of a recipe that can change a number."""
    keys = []
    for name, value in data.items():
        if not prefix and name in DESCRIPTIVE:
            continue
        key = f"{prefix}{name}"
        if isinstance(value, dict) and value:
            keys += leaves(value, f"{key}.")
        else:
            keys.append(key)
    return keys


def unsourced(written: dict[str, Any], data: dict[str, Any]) -> list[Problem]:
    """Return the problems of ``sources``: values without a source, and sources without a value.

    ``written`` is the file, ``data`` the file laid over those that it extends. A file without
    ``sources`` has no problems.
    """
    if "sources" not in written:
        return []
    sources = written["sources"]
    problems = []
    for leaf in leaves(written):
        if not _is_within(leaf, sources):
            message = f"has no source; add '{leaf}' or a section around it to sources"
            problems.append(Problem(message, leaf, code="no_source"))
    keys = leaves(data)
    for source in sources:
        if not any(_is_within(key, [source]) for key in keys):
            message = "names no value of this recipe; write it like 'optimizer.lr'"
            problems.append(Problem(message, f"sources.{source}", code="no_value"))
    return problems


def overlay(below: Recipe, override: Mapping[str, Any]) -> Recipe:
    """Return a recipe with ``override`` laid over it; raise ConfigError with all problems."""
    given = {item.name: asdict(getattr(below, item.name)) for item in fields(Recipe)}
    recipe = build(Recipe, merge(given, override), "recipe")
    problems = check_recipe(recipe)
    if backbone := _backbone_problem(recipe.model):
        problems.append(backbone)
    else:
        problems += input_problems(recipe)
    if problems:
        raise ConfigError("recipe", problems)
    return recipe


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Lay ``above`` over ``below``, key by key; another sampler does not inherit the parameters."""
    result = dict(below)
    for key, value in above.items():
        base = below.get(key)
        if isinstance(value, dict) and isinstance(base, dict):
            if "params" in base and value.get("name", base.get("name")) != base.get("name"):
                base = {}
            value = merge(base, value)
        result[key] = value
    return result


@functools.cache
def _backbone_problem(config: ModelConfig) -> Problem | None:
    """Return the problem of the backbone. Only a name that is not on the list needs timm."""
    untrained = not config.pretrained or config.checkpoint is not None
    if config.backbone in WEIGHTS or (untrained and config.backbone in {FEATURES, *ARCHITECTURES}):
        return None
    from benchmark.models.backbone import check_backbone, prepare_torchvision

    prepare_torchvision()
    try:
        check_backbone(config)
    except ConfigError as error:
        return Problem(error.problems[0].message, "model.backbone")
    return None


def input_problems(recipe: Recipe) -> list[Problem]:
    """Return the inputs of a recipe that its pretrained weights do not take."""
    model = recipe.model
    view = recipe.input
    if not model.pretrained or model.checkpoint is not None or model.channels != RGB:
        return []
    facts = WEIGHTS.get(model.backbone)
    if facts is None:
        from benchmark.models.backbone import weight_facts

        facts = weight_facts(model)
    side = view.image_size
    patch = facts.patch
    fixed = facts.fixed_side
    problems = []

    def fits(size: int) -> bool:
        if patch:
            return size % patch == 0
        return not fixed or size == fixed

    for key, given, wanted in (("mean", view.mean, facts.mean), ("std", view.std, facts.std)):
        values = given * RGB if len(given) == 1 else given[:RGB]
        close = map(functools.partial(math.isclose, abs_tol=5e-4), values, wanted)
        if not view.own_normalisation and not all(close):
            message = (
                f"{given} is not the {key} that '{model.backbone}' was pretrained with; give "
                f"{[*wanted]}, or set input.own_normalisation: true where it is meant"
            )
            problems.append(Problem(message, f"input.{key}"))
    if not fits(side):
        message = f"{side} is not the side that '{model.backbone}' takes; give {fixed}"
        if patch:
            below = max(side // patch, 1) * patch
            above = (side // patch + 1) * patch
            message = (
                f"{side} is not a multiple of the patches of '{model.backbone}', {patch} pixels; "
                f"give {' or '.join(map(str, sorted({below, above})))}"
            )
        problems.append(Problem(message, "input.image_size"))
    advice = f"scales that end at multiples of {patch}" if patch else "null"
    for scale in recipe.evaluation.scales or ():
        size = int(0.5 + scale * side)
        if not fits(size):
            message = (
                f"{scale:g} times {side} is {size}, which '{model.backbone}' does not take; "
                f"give {advice}"
            )
            problems.append(Problem(message, "evaluation.scales"))
    return problems
