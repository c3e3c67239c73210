"""Whether a recipe's backbone exists, asked of timm's source text first: importing timm takes
seconds."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

from benchmark.core.errors import ConfigError, Problem
from benchmark.core.recipe_model import GOOGLENET, GOOGLENET_WEIGHTS, ModelConfig


def backbone_problem(config: ModelConfig) -> Problem | None:
    """Return what is wrong with the backbone."""
    if _is_plain(config):
        return None
    return _asked(config)


def _is_plain(config: ModelConfig) -> bool:
    """Say whether timm's text settles it: the architecture is there and the tag, if any, has
    weights."""
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
