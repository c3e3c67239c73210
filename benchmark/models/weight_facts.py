"""What has to be known of pretrained weights before a recipe for them can be written."""

import json
import re
from dataclasses import asdict, dataclass

from benchmark.core.recipe import GOOGLENET, GOOGLENET_WEIGHTS, ModelConfig
from benchmark.models import googlenet
from benchmark.models.backbone import RESIZING_MODULES, check_backbone
from benchmark.models.vision_ops import prepare_torchvision


@dataclass(frozen=True)
class WeightFacts:
    """What inputs have to be like.

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
        return WeightFacts(googlenet.MEAN, googlenet.STD, None)
    known = timm.get_pretrained_cfg(backbone)
    if known is None:
        return WeightFacts(IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD, None)
    follows = timm.models.model_entrypoint(architecture).__module__ in RESIZING_MODULES
    patch = re.search(r"_(?:patch|p)(\d+)", architecture) if follows else None
    return WeightFacts(
        tuple(known.mean),
        tuple(known.std),
        known.input_size[-1] if known.fixed_input_size else None,
        int(patch[1]) if patch else None,
    )
