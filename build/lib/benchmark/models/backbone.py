"""Backbones by name and weight tag, without classifiers: timm's, and torchvision's GoogLeNet."""

import difflib
import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from torch import nn

from benchmark.core.errors import ConfigError, DataError
from benchmark.core.recipe import GOOGLENET, GOOGLENET_WEIGHTS, ModelConfig
from benchmark.models import torchvision
from benchmark.models.torchvision import prepare_torchvision
from benchmark.models.weights import WHERE, load_weights, read_checkpoint

# The ROADMAP authors load distilled weights into the plain network and drop the distillation token.
PLAIN_OF_DISTILLED = {
    f"deit_{size}_distilled_patch16_224": f"deit_{size}_patch16_224"
    for size in ("tiny", "small", "base")
}
# Families whose position embeddings can follow the size of the images.
RESIZING_MODULES = ("timm.models.vision_transformer", "timm.models.deit", "timm.models.eva")


def create_backbone(config: ModelConfig) -> nn.Module:
    """Return the backbone, with pretrained weights when the recipe asks for them."""
    prepare_torchvision()
    import timm

    check_backbone(config)
    architecture, _, tag = config.backbone.partition(".")
    name = PLAIN_OF_DISTILLED.get(architecture, config.backbone)
    hub = config.pretrained and config.checkpoint is None
    if architecture == GOOGLENET:
        if config.channels != 3:
            raise ConfigError(WHERE, [f"channels: '{GOOGLENET}' takes 3, not {config.channels}"])
        if hub:
            return _from_hub(lambda: torchvision.GoogLeNet(tag), config)
        backbone: nn.Module = torchvision.GoogLeNet()
    elif hub and name == config.backbone:
        return _from_hub(lambda: _create(timm, name, config, pretrained=True), config)
    else:
        if hub:
            source = _from_hub(lambda: timm.create_model(config.backbone, pretrained=True), config)
        backbone = _create(timm, name, config, pretrained=False)
        if hub:
            load_weights(backbone, source.state_dict(), config.backbone)
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
    problem = ""
    if architecture == GOOGLENET:
        tags = sorted(GOOGLENET_WEIGHTS)
    else:
        names = timm.list_models(f"{architecture}.*", pretrained=True)
        tags = sorted(name.partition(".")[2] for name in names)
    known = ", ".join(filter(None, tags)) or "none: give 'checkpoint'"
    if architecture != GOOGLENET and not timm.is_model(architecture):
        name, every = architecture or config.backbone, [*timm.list_models(), GOOGLENET]
        close = ", ".join(difflib.get_close_matches(name, every, n=3))
        hint = f"did you mean {close}?" if close else "see timm.list_models() for what there is"
        problem = f"unknown backbone '{name}'; {hint}"
    elif tag and tag not in tags:
        near = difflib.get_close_matches(tag, tags, n=1)
        hint = f"did you mean '{architecture}.{near[0]}'? " if near else ""
        problem = f"'{architecture}' has no weight tag '{tag}'; {hint}known: {known}"
    elif config.pretrained and config.checkpoint is None and not tag:
        problem = f"pretrained '{architecture}' needs its weight tag spelled out; known: {known}"
    if problem:
        raise ConfigError(WHERE, [problem])


@dataclass(frozen=True)
class WeightFacts:
    """What has to be known of pretrained weights before a recipe for them can be written.

    mean, std     of the pixels that the weights were trained on, per channel
    fixed_side    side that they were trained at where timm calls it fixed, pixels
    patch         where the network follows another side, which must be a multiple of this, pixels
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    fixed_side: int | None
    patch: int | None = None


def weight_facts(config: ModelConfig) -> WeightFacts:
    """Return facts of the weights that ``config`` names, unloaded; raise ConfigError."""
    prepare_torchvision()
    check_backbone(config)
    return _facts(config.backbone)


def print_all_facts() -> None:
    """Print the facts of every weight tag, by the backbone's name, as one line of JSON."""
    prepare_torchvision()
    import timm

    names = [name for name in timm.list_models(pretrained=True) if "." in name]
    names += [f"{GOOGLENET}.{tag}" for tag in GOOGLENET_WEIGHTS]
    print(json.dumps({name: asdict(_facts(name)) for name in names}))


def _facts(backbone: str) -> WeightFacts:
    import timm
    from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD

    architecture = backbone.partition(".")[0]
    if architecture == GOOGLENET:
        return WeightFacts(torchvision.MEAN, torchvision.STD, None)
    known = timm.get_pretrained_cfg(backbone)
    if known is None:
        return WeightFacts(IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD, None)
    follows = timm.models.model_entrypoint(architecture).__module__ in RESIZING_MODULES
    patch = re.search(r"_(?:patch|p)(\d+)", architecture) if follows else None
    side = known.input_size[-1] if known.fixed_input_size else None
    return WeightFacts(tuple(known.mean), tuple(known.std), side, int(patch[1]) if patch else None)
