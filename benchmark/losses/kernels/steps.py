"""Step functions: how far an item counts as ranked above another one.

With s_k the score of an anchor and s_j that of another item, in units of tau, the rank of the
anchor is 1 + sum over j != k of h(s_j - s_k). The exact h is 1 from 0 on, else 0. Other steps
replace it, because its derivative is 0 wherever there is one. Each step comes in two forms:
compared pair by pair (``count``), and expanded on panels (``expand``).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmark.losses.kernels.blocks import chunks, count_at_least, flush_tails
from benchmark.losses.kernels.panels import Count, Expansion, Grid, Kernel, bell

# A sum for each anchor (b, p), and a function that returns h' of each pair (b, p, n); None for 0.
PairCount = tuple[Tensor, Callable[[], Tensor] | None]


class Step(ABC):
    """A function h of the difference of two scores.

    bend        difference at which h changes its formula; a grid of panels needs it
    """

    bend: float

    @property
    @abstractmethod
    def at_tie(self) -> float:
        """h(0), by which an item counts against itself."""

    @abstractmethod
    def count(self, items: Tensor, anchors: Tensor, base: Tensor | float) -> PairCount:
        """Return ``base`` + the sum of h over items (b, 1, n), for anchors (b, p, 1), and h'."""

    @abstractmethod
    def expand(self, grid: Grid) -> Expansion:
        """Return the same function for sums over many pairs at once."""


class Exact(Step):
    """h(t) = 1 for t >= 0, else 0: ties count as lost. Its derivative is taken as 0."""

    at_tie, bend = 1.0, 0.0

    def count(self, items, anchors, base):
        return base + count_at_least(items, anchors), None

    def expand(self, grid):
        return Expansion(jump=1.0)


class Uncounted(Step):
    """h(t) = 0, even against the item itself: such items have no part in the rank."""

    at_tie, bend = 1.0, 0.0

    def count(self, items, anchors, base):
        return base + anchors.new_zeros(anchors.shape[:2]), None

    def expand(self, grid):
        return Expansion()


class Sigmoid(Step):
    """h(t) = sigmoid(t) (Smooth-AP, Eq. 5)."""

    at_tie, bend = 0.5, 0.0

    def count(self, items, anchors, base):
        curve = flush_tails(torch.sub(items, anchors)).sigmoid_()
        return base + curve.sum(2), lambda: curve.addcmul_(curve, curve, value=-1)

    def expand(self, grid):
        return Expansion(Kernel(grid, torch.sigmoid), Kernel(grid, bell))


@dataclass(frozen=True)
class UpperBound(Step):
    """SupAP's bound of the exact step from above (ROADMAP, Eq. 4), here in units of tau::

        h(t) = sigmoid(t)                       for t < 0
               sigmoid(t) + start               for 0 <= t <= bend
               slope (t - bend) + offset        for t > bend

    ``offset`` None makes h continuous at ``bend``.
    """

    bend: float
    slope: float
    start: float
    offset: float | None

    @property
    def at_tie(self) -> float:
        return 0.5 + self.start

    @property
    def level(self) -> float:
        """The sigmoid at the bend."""
        return 1.0 / (1.0 + math.exp(-self.bend)) if self.bend < 700 else 1.0

    @property
    def jump(self) -> float:
        """By how much h jumps at the bend."""
        return 0.0 if self.offset is None else self.offset - self.level - self.start

    def count(self, items, anchors, base):
        gap = flush_tails(torch.sub(items, anchors))
        curve = gap.clamp(max=self.bend).sigmoid_()
        total = base + curve.sum(2)
        if self.start:
            total += self.start * count_at_least(gap, gap.new_zeros(()))
        excess = gap.sub_(self.bend).relu_()
        total += self.slope * excess.sum(2)
        if self.jump:
            total += self.jump * excess.gt_(0.0).sum(2)
        # beyond the bend the clamped sigmoid has the constant slope level (1 - level)
        correction = self.slope - self.level * (1.0 - self.level)

        def slope() -> Tensor:
            return curve.addcmul_(curve, curve, value=-1).add_(excess.gt_(0.0), alpha=correction)

        return total, slope

    def expand(self, grid):
        def line(gap: Tensor) -> Tensor:
            return self.slope * (gap - self.bend) + self.level + self.jump

        slope = Kernel(grid, bell, lambda gap: torch.full_like(gap, self.slope))
        return Expansion(Kernel(grid, torch.sigmoid, line), slope, jump=self.start)


class Pairs:
    """The sides of a block compared with the anchors, its first side, pair by pair."""

    def __init__(self, sides: Sequence[Tensor], steps: Sequence[Step], elements: int):
        self.sides, self.steps = sides, steps
        self.dtype = sides[0].dtype
        rows, anchors = sides[0].shape
        self.parts = chunks(anchors, rows * max(side.shape[1] for side in sides), elements)

    def count(self, side: int, part: slice, base: Tensor | float) -> Count:
        """Return ``base`` + the number of items of a side above the anchors in ``part`` (b, p)."""
        items, anchors = self.sides[side].unsqueeze(1), self.sides[0][:, part].unsqueeze(2)
        total, slope_of_pairs = self.steps[side].count(items, anchors, base)
        if slope_of_pairs is None:
            return total, None

        def derivative(weights: Tensor) -> tuple[Tensor, Tensor]:
            slope = slope_of_pairs()
            return torch.bmm(weights.unsqueeze(1), slope).squeeze(1), weights * slope.sum(2)

        return total, derivative
