"""The optimiser over backbone, head and loss parameters, each with its own multiple of the rate."""

import torch
from torch import nn

from benchmark.core.recipe import OptimizerConfig
from benchmark.models import EmbeddingModel

OPTIMIZERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def create_optimizer(
    config: OptimizerConfig, model: EmbeddingModel, loss: nn.Module
) -> torch.optim.Optimizer:
    """Return Adam or AdamW; parameters of the loss (proxies) learn at the head's rate."""
    groups = list(model.parameter_groups(config.head_lr_multiplier, config.layer_decay))
    proxies = [parameter for parameter in loss.parameters() if parameter.requires_grad]
    if proxies:
        groups.append({"params": proxies, "lr_multiplier": config.head_lr_multiplier})
    groups = groups or [{"params": []}]  # of a network without head that is only evaluated
    return OPTIMIZERS[config.name](
        groups, lr=config.lr, weight_decay=config.weight_decay, fused=True
    )


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the rate of every group to ``rate`` times the group's ``lr_multiplier``."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get("lr_multiplier", 1.0)
