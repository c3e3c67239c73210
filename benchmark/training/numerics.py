"""Where and how a run computes: device, threads, deterministic kernels, autocast."""

import contextlib
import os
from typing import Any

import torch

from benchmark.core.recipe import TrainingConfig

AUTOCAST = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}


def prepare_numerics(config: TrainingConfig) -> torch.device:
    """Set threads and determinism for this process; returns the device to compute on.

    Deterministic mode pins: deterministic torch kernels, cuDNN autotuning off, TF32 off, and a
    fixed cuBLAS workspace (without which cuBLAS may change its order of summation between streams).
    Torch would also fill every new tensor with NaN, a seventh of a step's time; kernels that write
    all of their output, as those here do, are none the safer for it.
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
    dtype = AUTOCAST[config.precision]
    if dtype is None or device.type != "cuda":
        return contextlib.nullcontext()
    return torch.autocast("cuda", dtype=dtype)


def grad_scaler(config: TrainingConfig, device: torch.device) -> torch.amp.GradScaler:
    """Return a gradient scaler that is active for float16 on CUDA only."""
    return torch.amp.GradScaler(enabled=config.precision == "float16" and device.type == "cuda")
