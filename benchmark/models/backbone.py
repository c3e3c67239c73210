"""timm backbones by name and weight tag, without their classifiers."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmark.errors import ConfigError, DataError
from benchmark.models.vision_ops import prepare_torchvision
from benchmark.recipe import ModelConfig

WHERE = "recipe section model"
# The ROADMAP authors load distilled weights into the plain network and drop the distillation token.
PLAIN_OF_DISTILLED = {
    "deit_tiny_distilled_patch16_224": "deit_tiny_patch16_224",
    "deit_small_distilled_patch16_224": "deit_small_patch16_224",
    "deit_base_distilled_patch16_224": "deit_base_patch16_224",
}
CLASSIFIER_PREFIXES = ("fc.", "classifier.", "head.", "head_dist.", "last_linear.")


def create_backbone(config: ModelConfig) -> nn.Module:
    """Returns the backbone, with pretrained weights when the recipe asks for them."""
    prepare_torchvision()
    import timm

    architecture = config.backbone.partition(".")[0]
    if not timm.is_model(architecture):
        raise ConfigError(WHERE, [_unknown(architecture, timm.list_models())])
    distilled = architecture in PLAIN_OF_DISTILLED
    name = PLAIN_OF_DISTILLED.get(architecture, config.backbone)
    if config.checkpoint is not None:
        backbone = _create(timm, name, config, pretrained=False)
        _load(backbone, _read_checkpoint(config.checkpoint), distilled, config.checkpoint)
        return backbone
    if not config.pretrained:
        return _create(timm, name, config, pretrained=False)
    if not distilled:
        return _from_hub(lambda: _create(timm, name, config, pretrained=True), config)
    source = _from_hub(lambda: timm.create_model(config.backbone, pretrained=True), config)
    backbone = _create(timm, name, config, pretrained=False)
    _load(backbone, source.state_dict(), True, config.backbone)
    return backbone


def _create(timm: Any, name: str, config: ModelConfig, pretrained: bool) -> nn.Module:
    tag = name if pretrained else name.partition(".")[0]
    return timm.create_model(tag, pretrained=pretrained, num_classes=0, global_pool="", in_chans=config.channels)


def _from_hub(load: Callable[[], nn.Module], config: ModelConfig) -> nn.Module:
    try:
        return load()
    except Exception as error:  # hub clients raise many kinds; each means: no weights
        reason = str(error).strip().splitlines()
        raise DataError(
            f"{WHERE}: the weights of '{config.backbone}' could not be loaded "
            f"({reason[0] if reason else type(error).__name__}); connect to the hub once, or set model.checkpoint "
            "to a file with the state dict"
        ) from error


def _read_checkpoint(path: str) -> dict[str, torch.Tensor]:
    if not Path(path).is_file():
        raise DataError(f"{WHERE}: no checkpoint file {path}; give the path of a state dict saved with torch.save")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises whatever the bytes provoke
        raise DataError(
            f"{WHERE}: {path} is not a state dict that can be read safely ({type(error).__name__}); "
            "save one with torch.save(model.state_dict(), path)"
        ) from error
    for key in ("state_dict", "model"):
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    if not isinstance(content, dict) or not all(isinstance(value, torch.Tensor) for value in content.values()):
        raise DataError(f"{WHERE}: {path} holds no state dict (names to tensors)")
    return content


def _load(backbone: nn.Module, weights: dict[str, torch.Tensor], distilled: bool, source: str) -> None:
    """Loads ``weights`` strictly, apart from classifiers and the distillation token."""
    weights = {key: value for key, value in weights.items() if not key.startswith(CLASSIFIER_PREFIXES)}
    if distilled and "dist_token" in weights:
        weights.pop("dist_token")
        position = weights["pos_embed"]
        weights["pos_embed"] = torch.cat([position[:, :1], position[:, 2:]], dim=1)
    expected = backbone.state_dict()
    problems = [f"{source} lacks {key}" for key in expected if key not in weights]
    problems += [f"{source} has unexpected {key}" for key in weights if key not in expected]
    problems += [
        f"{source}: {key} has shape {tuple(weights[key].shape)}, expected {tuple(value.shape)}"
        for key, value in expected.items()
        if key in weights and weights[key].shape != value.shape
    ]
    if problems:
        raise ConfigError(WHERE, problems)
    backbone.load_state_dict(weights)


def _unknown(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=3)
    hint = f"did you mean {', '.join(close)}?" if close else "see timm.list_models() for what there is"
    return f"unknown backbone '{name}'; {hint}"
