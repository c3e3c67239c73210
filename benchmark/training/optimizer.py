"""The optimiser over backbone, head and loss parameters, and its learning rate.

Schedules are pure functions of progress: resuming needs no state of them.
"""

import math

import torch
from torch import nn

from benchmark.core.recipe import OptimizerConfig, ScheduleConfig
from benchmark.models import EmbeddingModel

OPTIMIZERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
ONE_CYCLE_START = 1 / 25
ONE_CYCLE_END = 1e-4


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


def learning_rate_factor(config: ScheduleConfig, epoch: int, share: float, epochs: int) -> float:
    """Return the multiple of the optimiser's rate at ``share`` (0 to 1) of epoch ``epoch``, from 0.

    ``step`` multiplies by gamma after each milestone; ``linear`` falls to 0 at the end;
    ``one_cycle`` rises along a cosine from 1/25 to 1 at ``peak_at`` of the training and falls along
    a cosine to 1e-4.
    """
    done = epoch + share
    warmup = min(1.0, done / config.warmup_epochs) if config.warmup_epochs else 1.0
    if config.name == "step":
        shape = config.gamma ** sum(epoch >= milestone for milestone in config.milestones)
    elif config.name == "linear":
        shape = 1.0 - done / epochs
    elif config.name == "one_cycle":
        shape = _one_cycle(done / epochs, config.peak_at)
    else:
        shape = 1.0
    return warmup * shape


def _one_cycle(progress: float, peak_at: float) -> float:
    if progress < peak_at:
        return _cosine(ONE_CYCLE_START, 1.0, progress / peak_at)
    return _cosine(1.0, ONE_CYCLE_END, (progress - peak_at) / (1.0 - peak_at))


def _cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) * 0.5 * (1.0 + math.cos(math.pi * share))
