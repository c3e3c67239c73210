"""How large the temporary tensors of the pairwise kernels are."""

from __future__ import annotations

import torch

# On a CPU a block and its scratch copy should stay in the second-level cache of two cores; on a GPU a block
# should be large enough that few kernels are launched.
CPU_ELEMENTS = 2**19
GPU_ELEMENTS = 2**26

# Score of an entry that must not be counted: far below any cosine, yet finite, so that 0 x score stays 0.
HIDDEN = -1e30


def flush_tails(logits: torch.Tensor) -> torch.Tensor:
    """Returns ``logits`` with those whose sigmoid is negligible replaced by HIDDEN, in place; NaN stays.

    Below the bound a sigmoid, or its square, is denormal, and CPUs take a hundred times longer over denormal numbers.
    What is dropped is under 5e-18 in float32 and 1e-147 in float64, in sums that are at least 0.5.
    """
    return torch.threshold_(logits, -340.0 if logits.dtype == torch.float64 else -40.0, HIDDEN)


def block_elements(device: torch.device) -> int:
    """Returns the number of elements that a temporary tensor may have on ``device``."""
    return GPU_ELEMENTS if device.type == "cuda" else CPU_ELEMENTS


def chunks(size: int, width: int, elements: int) -> list[slice]:
    """Returns slices of ``range(size)``, each as long as ``elements / width`` allows but at least 1."""
    step = max(1, elements // max(1, width))
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]


def count_at_least(items: torch.Tensor, bounds: torch.Tensor) -> torch.Tensor:
    """Returns how many items along the last axis are at or above their bound, as floating point."""
    # a floating-point result keeps comparison and sum vectorised, which a boolean sum is not
    return torch.ge(items, bounds, out=items.new_empty(0)).sum(-1)
