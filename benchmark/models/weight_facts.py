"""What has to be known of pretrained weights before a recipe for them can be written."""

from __future__ import annotations

from dataclasses import dataclass

from benchmark.core.recipe_model import GOOGLENET, ModelConfig
from benchmark.models import googlenet
from benchmark.models.backbone import check_backbone
from benchmark.models.vision_ops import prepare_torchvision


@dataclass(frozen=True)
class WeightFacts:
    """Mean and standard deviation of the pixels that the weights were trained on, and the side they
    demand, if any."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    fixed_side: int | None


def weight_facts(config: ModelConfig) -> WeightFacts:
    """Return the facts of the weights that ``config`` names, unloaded; raises ConfigError for a
    wrong name."""
    prepare_torchvision()
    import timm
    from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD

    check_backbone(config)
    if config.backbone.partition(".")[0] == GOOGLENET:
        return WeightFacts(googlenet.MEAN, googlenet.STD, None)
    known = timm.get_pretrained_cfg(config.backbone)
    if known is None:
        return WeightFacts(IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD, None)
    return WeightFacts(
        tuple(known.mean),
        tuple(known.std),
        known.input_size[-1] if known.fixed_input_size else None,
    )
