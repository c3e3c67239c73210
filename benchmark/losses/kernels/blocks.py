"""Blocks of queries with equally many positives, small enough for a cache or a GPU's memory."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from benchmark.losses.kernels.relation import Group, Relation

# On a CPU a block and its scratch copy should stay in the second-level cache of two cores; on a GPU
# a block should be large enough that few kernels are launched.
CPU_ELEMENTS = 2**19
GPU_ELEMENTS = 2**26

# Score of an entry that must not count: far below any cosine, yet finite, so that 0 x score is 0.
HIDDEN = -1e30
# With fewer positives than this, overwriting their scores is cheaper than leaving them out.
LEFT_OUT_FROM = 64

# From a block to its rows of scores (b, R), as a copy, and the scores of its positives (b, P).
Read = Callable[[Group], tuple[Tensor, Tensor]]
# From a block, scores of positives (b, P) and of negatives (b, N) to losses (b,), followed by the
# derivatives with respect to both scores where a gradient is asked for. A negative of HIDDEN is no
# item.
Evaluate = Callable[[Group, Tensor, Tensor], tuple[Tensor, ...]]


def block_losses(
    scores: Tensor,
    relation: Relation,
    blocks: Iterable[Group],
    read: Read,
    evaluate: Evaluate,
    gradient: bool,
) -> tuple[Tensor, Tensor | None]:
    """Return losses (Q,) and their derivative (Q, R), both 0 for queries of no block."""
    values = scores.new_zeros(relation.queries)
    derivative = torch.zeros_like(scores) if gradient else None
    for block in blocks:
        rows, positives = read(block)
        negatives, columns = _negatives(rows, relation.hidden(block))
        losses, *slopes = evaluate(block, positives, negatives)
        values[block.queries] = losses
        if derivative is not None:
            of_positives, of_negatives = slopes
            if columns is not None:
                of_negatives = rows.zero_().scatter_(1, columns, of_negatives)
            derivative[block.queries] = of_negatives.scatter_(1, block.columns, of_positives)
    return values, derivative


def _negatives(rows: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return the scores (b, w) of all but the columns ``hidden`` (b, h), and their columns.

    Few hidden entries are overwritten with HIDDEN; then w = R, and there are no columns.
    """
    if hidden.shape[1] < LEFT_OUT_FROM:
        return rows.scatter_(1, hidden, HIDDEN), None
    counted = torch.ones(rows.shape, dtype=torch.bool, device=rows.device)
    counted.scatter_(1, hidden, False)
    # a stable descending sort of flags lists the counted columns first, without asking the device
    order = torch.sort(counted, dim=1, descending=True, stable=True).indices
    columns = order[:, : rows.shape[1] - hidden.shape[1]]
    return rows.gather(1, columns), columns


def block_elements(device: torch.device) -> int:
    """Return the number of elements that a temporary tensor may have on ``device``."""
    return GPU_ELEMENTS if device.type == "cuda" else CPU_ELEMENTS


def chunks(size: int, width: int, elements: int) -> list[slice]:
    """Return slices of ``range(size)``, of ``elements / width``, at least 1, each."""
    step = max(1, elements // max(1, width))
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]


def count_at_least(items: Tensor, bounds: Tensor) -> Tensor:
    """Return how many items along the last axis are at or above their bound, as floating point."""
    # a floating-point result keeps comparison and sum vectorised, which a boolean sum is not
    return torch.ge(items, bounds, out=items.new_empty(0)).sum(-1)


def flush_tails(logits: Tensor) -> Tensor:
    """Return ``logits`` with HIDDEN where the sigmoid is negligible, in place; NaN stays.

    Below the bound a sigmoid, or its square, is denormal, and CPUs take a hundred times longer for
    denormal numbers. What is dropped is under 5e-18 in float32 and 1e-147 in float64, in sums that
    are at least 0.5.
    """
    return torch.threshold_(logits, -340.0 if logits.dtype == torch.float64 else -40.0, HIDDEN)
