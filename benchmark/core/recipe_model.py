"""The recipe's section ``model``: backbone, pooling and head."""

from dataclasses import dataclass
from typing import Literal

from benchmark.core.errors import Problem
from benchmark.core.options import option

# The backbone that timm does not have, and torchvision's weights of it under tags as timm's.
GOOGLENET = "googlenet"
GOOGLENET_WEIGHTS = {"tv_in1k": "IMAGENET1K_V1"}


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Backbone, pooling, head and normalisation of the embedding network."""

    backbone: str = option(
        help="timm model name, with its weight tag when pretrained: resnet50.tv_in1k"
    )
    pretrained: bool = option(False, help="load the weights of the tag (timm) or of 'checkpoint'")
    checkpoint: str | None = option(
        None, help="path of a state dict to load instead of timm's weights"
    )
    channels: int = option(3, at_least=1, help="input channels")
    pooling: Literal["avg", "max", "gem", "token", "native"] = option(
        "avg",
        help="how a feature map becomes a vector; native: as the network was pretrained, with its "
        "attention pooling and last normalisation where it has them",
    )
    layer_norm: bool = option(False, help="LayerNorm between pooling and head")
    embedding_dim: int | None = option(
        None, at_least=1, at_most=1_000_000, help="width of the linear head; null means no head"
    )
    freeze_batch_norm: bool = option(
        False, help="keep batch-norm statistics fixed; weight and bias still train"
    )
    freeze_backbone: bool = option(
        False,
        added=True,
        help="train the head alone, on features that the backbone gives once and a cache keeps",
    )


def frozen_problems(model: ModelConfig, augmentation: str, epochs: int) -> list[Problem]:
    """Return what keeps a head from being trained on features that are computed once."""
    if not model.freeze_backbone:
        return []
    found = []
    if augmentation != "none":
        words = (
            f"'{augmentation}' changes images at each step, and a frozen backbone sees each image "
            "once (model.freeze_backbone); give 'none'"
        )
        found.append(Problem(words, "input.augmentation"))
    if model.pooling == "gem":
        words = (
            "'gem' learns its power from feature maps, of which a frozen backbone leaves one "
            "vector (model.freeze_backbone); give 'avg', 'max', 'token' or 'native'"
        )
        found.append(Problem(words, "model.pooling"))
    if model.embedding_dim is None and epochs:
        words = (
            "null means no head, and with model.freeze_backbone nothing else is trained; give "
            "the width of the head"
        )
        found.append(Problem(words, "model.embedding_dim"))
    return found
