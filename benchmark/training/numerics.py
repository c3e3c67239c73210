"""Device, threads, precision, optimiser and learning rate of a run.

The learning rate depends only on the progress of the training, so a resumed run needs no state of
the schedule.
"""

import contextlib
import math
import os
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from benchmark.core.recipe import OptimizerConfig, ScheduleConfig, TrainingConfig
from benchmark.models import EmbeddingModel

AUTOCAST = {"bfloat16": torch.bfloat16, "float16": torch.float16}
OPTIMIZERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
ONE_CYCLE_START = 1 / 25
ONE_CYCLE_END = 1e-4


def prepare_numerics(config: TrainingConfig) -> torch.device:
    """Set threads and determinism for this process; return the device to compute on.

    Deterministic mode means deterministic torch kernels, no cuDNN autotuning, no TF32, and a fixed
    cuBLAS workspace (without it cuBLAS may change its order of summation between streams). Torch
    would also fill every new tensor with NaN, which takes a seventh of a step's time. That is
    switched off, because the kernels here write all of their output.
    """
    torch.set_num_threads(config.threads)
    if config.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
        settings: Any = torch.utils.deterministic  # its annotations leave the property out
        settings.fill_uninitialized_memory = False
        torch.backends.cudnn.benchmark = False
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def autocast(config: TrainingConfig, device: torch.device) -> contextlib.AbstractContextManager:
    """Return the autocast context of the recipe's precision; on a CPU everything stays float32."""
    dtype = AUTOCAST.get(config.precision)
    if dtype is None or device.type != "cuda":
        return contextlib.nullcontext()
    return torch.autocast("cuda", dtype=dtype)


@contextlib.contextmanager
def tf32(config: TrainingConfig) -> Iterator[None]:
    """Let products and convolutions on CUDA round to TF32 in the block, if the recipe says so.

    The switches belong to the process. They are restored at the end of the block, so that losses,
    evaluations and later runs compute as before. On a CPU the switches have no effect.
    """
    if config.precision != "tf32":
        yield
        return
    switches: list[Any] = [torch.backends.cuda.matmul, torch.backends.cudnn]
    before = [switch.allow_tf32 for switch in switches]
    try:
        for switch in switches:
            switch.allow_tf32 = True
        yield
    finally:
        for switch, value in zip(switches, before, strict=True):
            switch.allow_tf32 = value


def grad_scaler(config: TrainingConfig, device: torch.device) -> torch.amp.GradScaler:
    """Return a gradient scaler that is active for float16 on CUDA only."""
    return torch.amp.GradScaler(enabled=config.precision == "float16" and device.type == "cuda")


def create_optimizer(
    config: OptimizerConfig, model: EmbeddingModel, loss: nn.Module
) -> torch.optim.Optimizer:
    """Return Adam or AdamW; parameters of the loss (proxies) may have their own rate and decay."""
    groups = list(model.parameter_groups(config.head_lr_multiplier, config.layer_decay))
    proxies = [parameter for parameter in loss.parameters() if parameter.requires_grad]
    if proxies:
        multiplier = config.proxy_lr_multiplier or config.head_lr_multiplier
        group: dict[str, Any] = {"params": proxies, "lr_multiplier": multiplier}
        if config.proxy_weight_decay is not None:
            group["weight_decay"] = config.proxy_weight_decay
        groups.append(group)
    groups = groups or [{"params": []}]  # a network without head that is only evaluated has none
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
    shape = 1.0
    peak = config.peak_at
    if config.name == "step":
        shape = config.gamma ** sum(epoch >= milestone for milestone in config.milestones)
    elif config.name == "linear":
        shape = 1.0 - done / epochs
    elif config.name == "one_cycle":
        if done / epochs < peak:
            start = ONE_CYCLE_START
            end = 1.0
            passed = done / epochs / peak
        else:
            start = 1.0
            end = ONE_CYCLE_END
            passed = (done / epochs - peak) / (1.0 - peak)
        shape = end + (start - end) * 0.5 * (1.0 + math.cos(math.pi * passed))
    return warmup * shape
