"""Backbones by name and weight tag, without classifiers: timm's, and torchvision's GoogLeNet."""

import contextlib
import difflib
import functools
import importlib.util
import math
import re
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn

from benchmark.core.backbones import WeightFacts
from benchmark.core.errors import ConfigError, DataError
from benchmark.core.recipe import GOOGLENET, GOOGLENET_WEIGHTS, InputConfig, ModelConfig
from benchmark.models.weights import WHERE, load_weights, read_checkpoint

# The ROADMAP authors load distilled weights into the plain network and drop the distillation token.
PLAIN_OF_DISTILLED = {
    f"deit_{size}_distilled_patch16_224": f"deit_{size}_patch16_224"
    for size in ("tiny", "small", "base")
}
# Families whose position embeddings can follow the size of the images.
RESIZING_MODULES = ("timm.models.vision_transformer", "timm.models.deit", "timm.models.eva")
# GoogLeNet's weights were trained on pixels scaled to [-1, 1]; inputs come normalised as for all
# other networks.
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def create_backbone(config: ModelConfig) -> nn.Module:
    """Return the backbone, with pretrained weights when the recipe asks for them."""
    prepare_torchvision()
    import timm

    check_backbone(config)
    architecture, _, tag = config.backbone.partition(".")
    if architecture == GOOGLENET and config.channels != 3:
        raise ConfigError(WHERE, [f"channels: '{GOOGLENET}' takes 3, not {config.channels}"])
    name = PLAIN_OF_DISTILLED.get(architecture, config.backbone)
    hub = config.pretrained and config.checkpoint is None
    weights = None
    try:
        if hub and name != config.backbone:
            weights = timm.create_model(config.backbone, pretrained=True).state_dict()
        if architecture == GOOGLENET:
            backbone: nn.Module = GoogLeNet(tag if hub else None)
        else:
            backbone = _create(timm, name, config, hub and weights is None)
    except Exception as error:  # hub clients raise many kinds; each means: no weights
        if not hub:
            raise
        reason = [*str(error).strip().splitlines(), type(error).__name__][0]
        raise DataError(
            f"{WHERE}: the weights of '{config.backbone}' could not be loaded ({reason}); connect "
            "to the hub once, or set model.checkpoint to a file with the state dict"
        ) from error
    if config.checkpoint is not None:
        weights = read_checkpoint(config.checkpoint)
    if weights is not None:
        load_weights(backbone, weights, config.checkpoint or config.backbone)
    return backbone


def _create(timm: Any, name: str, config: ModelConfig, pretrained: bool) -> nn.Module:
    tag = name if pretrained else name.partition(".")[0]
    options: dict[str, Any] = {"num_classes": 0, "in_chans": config.channels}
    if config.pooling != "native":
        options["global_pool"] = ""
    if timm.models.model_entrypoint(name.partition(".")[0]).__module__ in RESIZING_MODULES:
        options["dynamic_img_size"] = True
    return timm.create_model(tag, pretrained=pretrained, **options)


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
        name = architecture or config.backbone
        every = [*timm.list_models(), GOOGLENET]
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


def weight_facts(config: ModelConfig) -> WeightFacts:
    """Return facts of the weights that ``config`` names, unloaded; raise ConfigError."""
    prepare_torchvision()
    check_backbone(config)
    return facts_of_weights(config.backbone)


def facts_of_weights(backbone: str) -> WeightFacts:
    """Return the facts of ``architecture.tag``, which timm or torchvision has."""
    import timm
    from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD

    architecture = backbone.partition(".")[0]
    if architecture == GOOGLENET:
        return WeightFacts(MEAN, STD, None)
    known = timm.get_pretrained_cfg(backbone)
    if known is None:
        return WeightFacts(IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD, None)
    patch = None
    if timm.models.model_entrypoint(architecture).__module__ in RESIZING_MODULES:
        match = re.search(r"_(?:patch|p)(\d+)", architecture)
        patch = int(match[1]) if match else None
    side = known.input_size[-1] if known.fixed_input_size else None
    return WeightFacts(tuple(known.mean), tuple(known.std), side, patch)


def own_input(backbone: str, side: int | None) -> InputConfig:
    """Return the test images that the weights of a network of timm were made for.

    ``side`` is another one of the network's input, pixels. Raise ConfigError for an unknown name.
    """
    weight_facts(ModelConfig(backbone=backbone))
    import timm

    known: Any = timm.get_pretrained_cfg(backbone)
    if known is None:
        raise ConfigError(WHERE, [f"timm has no record of the input of '{backbone}'"])
    side = side or known.input_size[-1]
    resize = math.floor(side / known.crop_pct)
    return InputConfig(
        image_size=side,
        resize=resize,
        keep_aspect=True,
        mean=[*known.mean],
        std=[*known.std],
    )


@functools.cache
def prepare_torchvision() -> torch.library.Library | None:
    """Make sure that timm can import torchvision: declare ``nms`` and ``qnms`` if they are missing.

    torchvision's wheels are built for CUDA: beside a CPU-only torch the library of operators is not
    loaded, and the import fails on two of their schemas. No model here calls them.
    """
    spec = importlib.util.find_spec("torchvision")
    if spec is not None and spec.origin is not None:
        for path in sorted(Path(spec.origin).parent.glob("_C*")):
            with contextlib.suppress(OSError):
                torch.ops.load_library(str(path))
    if hasattr(torch.ops.torchvision, "nms"):
        return None
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(name + _SCHEMA)
    return library  # which the cache keeps: the schemas vanish with the object


class GoogLeNet(nn.Module):
    """Inception-v1 in the shape of a timm backbone, without auxiliary classifiers."""

    num_features = 1024
    default_cfg: ClassVar[dict[str, Any]] = {"classifier": "fc", "first_conv": "conv1.conv"}

    def __init__(self, tag: str | None = None):
        """Make the network with the weights of ``tag``, maybe downloaded, or with fresh ones."""
        super().__init__()
        from torchvision.models import googlenet

        if tag is None:
            network = googlenet(weights=None, aux_logits=False, init_weights=True)
        else:
            network = googlenet(weights=GOOGLENET_WEIGHTS[tag])
        self.rescale = _Rescale()
        for name, layer in network.named_children():
            if name == "avgpool":
                break
            if not name.startswith("aux"):
                self.add_module(name, layer)

    def forward_features(self, images: torch.Tensor) -> torch.Tensor:
        """Return the last feature map (B, 1024, H/32, W/32) of normalised images (B, 3, H, W)."""
        features = images
        for layer in self.children():
            features = layer(features)
        return features


class _Rescale(nn.Module):
    """From pixels normalised by ImageNet's mean and sd to pixels in [-1, 1]."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        scale = images.new_tensor(STD).view(3, 1, 1) / 0.5
        shift = (images.new_tensor(MEAN).view(3, 1, 1) - 0.5) / 0.5
        return images * scale + shift
