"""What the processor can do at best: the physical limit of a step follows from its operations and bytes."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch

from perf.turns import seconds_of

SIDE = 2048  # of the matrices whose product is timed
MOVED = 256 * 2**20  # bytes that are copied: more than caches hold
REPEATS = 5


@dataclass(frozen=True)
class Rates:
    """Float32 operations of a matrix product, and bytes read and written of a copy, per second."""

    operations: float
    moved: float

    def limit(self, operations: float, moved: float) -> str:
        """Returns in words how long so many operations and bytes take at least."""
        return (
            f"{_amount(operations)}FLOP, {_amount(moved)}B moved: {_time(operations / self.operations)} and "
            f"{_time(moved / self.moved)} at this machine's {_amount(self.operations)}FLOP/s (matrix product) and "
            f"{_amount(self.moved)}B/s (copy)"
        )


@functools.cache
def machine_rates() -> Rates:
    """Returns the best of a few measurements with the threads that torch has at the first call."""
    factor = torch.randn(SIDE, SIDE, generator=torch.Generator().manual_seed(0))
    product = torch.empty_like(factor)
    source = torch.zeros(MOVED, dtype=torch.uint8)
    target = torch.zeros_like(source)
    multiplying = min(
        seconds_of(lambda: torch.mm(factor, factor, out=product)) for _ in range(REPEATS)
    )
    copying = min(seconds_of(lambda: target.copy_(source)) for _ in range(REPEATS))
    return Rates(2 * SIDE**3 / multiplying, 2 * MOVED / copying)


def _amount(value: float) -> str:
    """Returns 3 significant digits with a unit's prefix."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g} "


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
