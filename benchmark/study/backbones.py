"""Whether a recipe's backbone exists, and whether its inputs are what the weights were trained on.

Importing timm takes seconds: the first is asked of its source text, the second of a file that a
process of its own makes once.
"""

import functools
import importlib.util
import math
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmark.core.child_json import from_child
from benchmark.core.code_version import version_of
from benchmark.core.environment import cache_folder
from benchmark.core.errors import ConfigError, Problem
from benchmark.core.recipe import Recipe
from benchmark.core.recipe_model import GOOGLENET, GOOGLENET_WEIGHTS, ModelConfig

RGB = 3


def backbone_problem(config: ModelConfig) -> Problem | None:
    """Return what is wrong with the backbone."""
    if _is_plain(config):
        return None
    return _asked(config)


def _is_plain(config: ModelConfig) -> bool:
    """Say whether timm's text settles it: the architecture is there, and its tag has weights."""
    architecture, _, tag = config.backbone.partition(".")
    if architecture == GOOGLENET:
        return tag in GOOGLENET_WEIGHTS
    if not architecture.isidentifier() or f"\ndef {architecture}(" not in _source_text():
        return False
    if not tag:
        return not config.pretrained or config.checkpoint is not None
    return f"'{config.backbone}':" in _source_text()


@functools.cache
def _source_text() -> str:
    package = importlib.util.find_spec("timm")
    if package is None or package.origin is None:
        return ""
    files = sorted((Path(package.origin).parent / "models").glob("[a-z]*.py"))
    return "".join(path.read_text(encoding="utf-8") for path in files)


@functools.cache
def _asked(config: ModelConfig) -> Problem | None:
    from benchmark.models.backbone import check_backbone
    from benchmark.models.vision_ops import prepare_torchvision

    prepare_torchvision()
    try:
        check_backbone(config)
    except ConfigError as error:
        return Problem(error.problems[0].message, "model.backbone")
    return None


def input_problems(recipe: Recipe) -> list[Problem]:
    """Return where the inputs of a recipe are others than those its pretrained weights know."""
    model, view = recipe.model, recipe.input
    if not model.pretrained or model.checkpoint is not None or model.channels != RGB:
        return []
    facts = _facts(cache_folder()).get(model.backbone)
    if facts is None:
        return []
    found = []
    for key, given in (("mean", view.mean), ("std", view.std)):
        wanted = facts[key]
        values = given * RGB if len(given) == 1 else given[:RGB]
        close = all(map(lambda a, b: math.isclose(a, b, abs_tol=5e-4), values, wanted))
        if not close and not view.own_normalisation:
            words = f"{given} is not the {key} that '{model.backbone}' was pretrained with; give "
            words += f"{wanted}, or set input.own_normalisation: true where it is meant"
            found.append(Problem(words, f"input.{key}"))
    side, patch, fixed = view.image_size, facts["patch"], facts["fixed_side"]
    if patch and side % patch:
        near = sorted({max(side // patch, 1) * patch, (side // patch + 1) * patch})
        words = f"{side} is no multiple of the patches of '{model.backbone}', {patch} pixels; give "
        found.append(Problem(words + " or ".join(map(str, near)), "input.image_size"))
    if fixed and not patch and side != fixed:
        words = f"{side} is not the side that '{model.backbone}' takes; give {fixed}"
        found.append(Problem(words, "input.image_size"))
    for scale in recipe.evaluation.scales or ():
        scaled = int(0.5 + scale * side)
        if scaled % patch if patch else fixed and scaled != fixed:
            words = f"{scale:g} times {side} is {scaled}, which '{model.backbone}' does not take; "
            words += f"give scales that end at multiples of {patch}" if patch else "give null"
            found.append(Problem(words, "evaluation.scales"))
    return found


@functools.cache
def _facts(cache: Path) -> dict[str, Any]:
    """Return the facts of each backbone with a weight tag, as ``print_all_facts`` tells them."""
    path = cache / f"weights-{version('timm')}-{version_of('models')}.json"
    code = "from benchmark.models import weight_facts; weight_facts.print_all_facts()"
    facts: dict[str, Any] = from_child(path, code, "timm's list of weights")
    return facts
