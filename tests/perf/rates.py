"""The rates of this machine: from them follows the physical limit of a step."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from matplotlib.ticker import EngFormatter

from perf.interleave import seconds_of

SIDE = 2048  # of the matrices whose product is timed
COPIED = 256 * 2**20  # bytes: more than caches hold
REPEATS = 5


@dataclass(frozen=True)
class Rates:
    """Float32 operations of a matrix product, and bytes read and written of a copy, per second."""

    operations: float
    moved: float

    def limit(self, operations: float, moved: float) -> str:
        """Return in words how long so many operations and moved bytes take at least."""
        return (
            f"{_text(operations, 'FLOP')}, {_text(moved, 'B')} moved: "
            f"{_text(operations / self.operations, 's')} and {_text(moved / self.moved, 's')} at "
            f"this machine's {_text(self.operations, 'FLOP/s')} (matrix product) and "
            f"{_text(self.moved, 'B/s')} (copy)"
        )


@functools.cache
def machine_rates() -> Rates:
    """Return the best of a few measurements, with the threads that torch has at the first call."""
    factor = torch.randn(SIDE, SIDE, generator=torch.Generator().manual_seed(0))
    product = torch.empty_like(factor)
    source = torch.zeros(COPIED, dtype=torch.uint8)
    target = torch.zeros_like(source)
    product_seconds = min(
        seconds_of(lambda: torch.mm(factor, factor, out=product)) for _ in range(REPEATS)
    )
    copy_seconds = min(seconds_of(lambda: target.copy_(source)) for _ in range(REPEATS))
    return Rates(2 * SIDE**3 / product_seconds, 2 * COPIED / copy_seconds)


def _text(value: float, unit: str) -> str:
    return EngFormatter(unit)(float(f"{value:.3g}"))
