"""Embedding networks: a timm backbone, pooling, an optional head, unit-length rows."""

import torch

from benchmark.core.errors import ConfigError
from benchmark.core.recipe import FEATURES, ModelConfig
from benchmark.core.seeding import derive
from benchmark.models.backbone import create_backbone
from benchmark.models.embedding import EmbeddingModel, GivenFeatures
from benchmark.models.weights import load_head_and_power, read_checkpoint

__all__ = ["EmbeddingModel", "create_model"]


def create_model(config: ModelConfig, seed: int, width: int | None = None) -> EmbeddingModel:
    """Return the network of ``config``; fresh weights follow from ``seed`` alone.

    ``width`` is that of the features that are given to a head without a backbone.
    The global generators of torch are left as they were. Raises ConfigError for an unknown backbone
    or weights that do not fit it, DataError for weights that cannot be had.
    """
    if (config.backbone == FEATURES) != (width is not None):
        has = "features" if width else "images"
        problem = f"backbone '{config.backbone}' does not go with a dataset of {has}"
        raise ConfigError("recipe section model", [problem])
    with torch.random.fork_rng(devices=[]):
        # torch.manual_seed would also seed the GPUs' generators, which nothing restores.
        torch.default_generator.manual_seed(derive(seed, "weights"))
        backbone = create_backbone(config) if width is None else GivenFeatures(width)
        model = EmbeddingModel(config, backbone)
    if config.checkpoint is not None:
        weights = read_checkpoint(config.checkpoint)
        load_head_and_power(model.head, model.pooling, weights, config.checkpoint)
    return model
