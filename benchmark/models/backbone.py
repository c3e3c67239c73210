"""Backbones by name and weight tag, without classifiers: timm's, and torchvision's GoogLeNet."""

import difflib
from collections.abc import Callable
from typing import Any

from torch import nn

from benchmark.core.errors import ConfigError, DataError
from benchmark.core.recipe import GOOGLENET, GOOGLENET_WEIGHTS, ModelConfig
from benchmark.models import googlenet
from benchmark.models.vision_ops import prepare_torchvision
from benchmark.models.weights import WHERE, load_weights, read_checkpoint

# The ROADMAP authors load distilled weights into the plain network and drop the distillation token.
PLAIN_OF_DISTILLED = {
    "deit_tiny_distilled_patch16_224": "deit_tiny_patch16_224",
    "deit_small_distilled_patch16_224": "deit_small_patch16_224",
    "deit_base_distilled_patch16_224": "deit_base_patch16_224",
}
# Families whose position embeddings can follow the size of the images.
RESIZING_MODULES = ("timm.models.vision_transformer", "timm.models.deit", "timm.models.eva")


def create_backbone(config: ModelConfig) -> nn.Module:
    """Return the backbone, with pretrained weights when the recipe asks for them."""
    prepare_torchvision()
    import timm

    check_backbone(config)
    architecture = config.backbone.partition(".")[0]
    if architecture == GOOGLENET:
        return _googlenet(config)
    distilled = architecture in PLAIN_OF_DISTILLED
    name = PLAIN_OF_DISTILLED.get(architecture, config.backbone)
    if config.checkpoint is not None:
        backbone = _create(timm, name, config, pretrained=False)
        load_weights(backbone, read_checkpoint(config.checkpoint), config.checkpoint)
        return backbone
    if not config.pretrained:
        return _create(timm, name, config, pretrained=False)
    if not distilled:
        return _from_hub(lambda: _create(timm, name, config, pretrained=True), config)
    source = _from_hub(lambda: timm.create_model(config.backbone, pretrained=True), config)
    backbone = _create(timm, name, config, pretrained=False)
    load_weights(backbone, source.state_dict(), config.backbone)
    return backbone


def _googlenet(config: ModelConfig) -> nn.Module:
    if config.channels != 3:
        raise ConfigError(WHERE, [f"channels: '{GOOGLENET}' takes 3, not {config.channels}"])
    if config.pretrained and config.checkpoint is None:
        return _from_hub(lambda: googlenet.GoogLeNet(config.backbone.partition(".")[2]), config)
    backbone = googlenet.GoogLeNet()
    if config.checkpoint is not None:
        load_weights(backbone, read_checkpoint(config.checkpoint), config.checkpoint)
    return backbone


def _create(timm: Any, name: str, config: ModelConfig, pretrained: bool) -> nn.Module:
    tag = name if pretrained else name.partition(".")[0]
    options: dict[str, Any] = {"num_classes": 0, "in_chans": config.channels}
    if config.pooling != "native":
        options["global_pool"] = ""
    if timm.models.model_entrypoint(name.partition(".")[0]).__module__ in RESIZING_MODULES:
        options["dynamic_img_size"] = True
    return timm.create_model(tag, pretrained=pretrained, **options)


def _from_hub(load: Callable[[], nn.Module], config: ModelConfig) -> nn.Module:
    try:
        return load()
    except Exception as error:  # hub clients raise many kinds; each means: no weights
        reason = str(error).strip().splitlines()
        raise DataError(
            f"{WHERE}: the weights of '{config.backbone}' could not be loaded "
            f"({reason[0] if reason else type(error).__name__}); connect to the hub once, or set "
            "model.checkpoint to a file with the state dict"
        ) from error


def check_backbone(config: ModelConfig) -> None:
    """Raise ConfigError for an architecture or weight tag that there is not, or a missing tag."""
    import timm

    architecture, _, tag = config.backbone.partition(".")
    if architecture == GOOGLENET:
        tags = sorted(GOOGLENET_WEIGHTS)
    elif timm.is_model(architecture):
        tags = sorted(
            name.partition(".")[2]
            for name in timm.list_models(f"{architecture}.*", pretrained=True)
        )
    else:
        raise ConfigError(
            WHERE, [_unknown(architecture or config.backbone, [*timm.list_models(), GOOGLENET])]
        )
    known = ", ".join(filter(None, tags)) or "none: give 'checkpoint'"
    if tag and tag not in tags:
        close = difflib.get_close_matches(tag, tags, n=1)
        hint = f"did you mean '{architecture}.{close[0]}'? " if close else ""
        raise ConfigError(
            WHERE, [f"'{architecture}' has no weight tag '{tag}'; {hint}known: {known}"]
        )
    if config.pretrained and config.checkpoint is None and not tag:
        raise ConfigError(
            WHERE,
            [f"pretrained '{architecture}' needs its weight tag spelled out; known: {known}"],
        )


def _unknown(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=3)
    hint = (
        f"did you mean {', '.join(close)}?" if close else "see timm.list_models() for what there is"
    )
    return f"unknown backbone '{name}'; {hint}"
