"""Step functions: how far an item counts as ranked above another one, and sums of them.

With s_k the score of an anchor and s_j that of another item, in units of tau, the rank of the
anchor is 1 + sum over j != k of h(s_j - s_k). The exact h is 1 from 0 on, else 0. Other steps
replace it, because its derivative is 0 wherever there is one. ``Pairs`` compares pair by pair,
which takes nearly all the time of a class with hundreds of images, although the sums depend on one
variable only, the difference of two scores. ``Panels`` takes time linear in the scores, by
Chebyshev expansions on panels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from benchmark.losses.kernels.relation import (
    Relation,
    at_or_above,
    chunks,
    count_at_least,
    flush_tails,
)

Curve = Callable[[Tensor], Tensor]
# Counts of items above anchors (b, p), and None or a function of weights (b, p): the derivative of
# their weighted sum with respect to the items (b, n), and minus that to the anchors (b, p).
Count = tuple[Tensor, Callable[[Tensor], tuple[Tensor, Tensor]] | None]
# A sum for each anchor (b, p), and a function that returns h' of each pair (b, p, n); None for 0.
PairCount = tuple[Tensor, Callable[[], Tensor] | None]
# A step as a function on a grid, its derivative, and by how much it jumps at a difference of 0.
Expansion = tuple["Kernel | None", "Kernel | None", float]

# A sigmoid has its nearest poles at distance pi. On panels of this width the error of an expansion
# shrinks 5.2 times with each term: to 1e-13 of the largest value in float64, 1e-8 in float32.
WIDTH = 2.5
TERMS = {torch.float32: 11, torch.float64: 18}
# Above this many terms in all, the matrix between panels would cost more than it saves.
MOST_TERMS = 3072
# From this many positives on, the expansion takes less time than looking at each pair.
MANY_POSITIVES = 96
# Rows of this many scores in all are handled at once: their polynomials fit into the cache.
LARGE_BLOCK = 2**16


class StepFunction:
    """A function h of the difference of two scores.

    at_tie      h(0), by which an item counts against itself
    bend        difference at which h changes its formula; a grid of panels needs it
    count       ``base`` + the sum of h over items (b, 1, n), for anchors (b, p, 1), and h'
    expand      the same function for sums over many pairs at once
    """

    at_tie: float = 1.0
    bend: float = 0.0
    count: Callable[[Tensor, Tensor, Tensor | float], PairCount]
    expand: Callable[[PanelGrid], Expansion]


class Exact(StepFunction):
    """h(t) = 1 for t >= 0, else 0: ties count as lost. Its derivative is taken as 0.

    Plain formula: ``among`` in ``_bounded`` of ``conformance.formulas``.
    """

    def count(self, items, anchors, base):
        return base + count_at_least(items, anchors), None

    def expand(self, grid):
        return None, None, 1.0


class Uncounted(StepFunction):
    """h(t) = 0, even against the item itself: such items have no part in the rank.

    Plain formula: ``before`` in ``pnp`` of ``conformance.formulas``, which counts no positives.
    """

    def count(self, items, anchors, base):
        return base + anchors.new_zeros(anchors.shape[:2]), None

    def expand(self, grid):
        return None, None, 0.0


class Sigmoid(StepFunction):
    """h(t) = sigmoid(t) (Smooth-AP, Eq. 5).

    Plain formula: ``_smooth`` of ``conformance.formulas``.
    """

    at_tie = 0.5

    def count(self, items, anchors, base):
        curve = flush_tails(torch.sub(items, anchors)).sigmoid_()
        return base + curve.sum(2), lambda: curve.addcmul_(curve, curve, value=-1)

    def expand(self, grid):
        return Kernel(grid, torch.sigmoid), Kernel(grid, bell), 0.0


class UpperBound(StepFunction):
    """SupAP's bound of the exact step from above (ROADMAP, Eq. 4), here in units of tau::

        h(t) = sigmoid(t)                       for t < 0
               sigmoid(t) + start               for 0 <= t <= bend
               slope (t - bend) + offset        for t > bend

    ``offset`` None makes h continuous at ``bend``. Plain formula: ``_bounded`` of
    ``conformance.formulas``.
    """

    def __init__(self, bend: float, slope: float, start: float, offset: float | None):
        self.bend = bend
        self.slope = slope
        self.start = start
        self.at_tie = 0.5 + start
        self.level = 1.0 / (1.0 + math.exp(-bend)) if bend < 700 else 1.0  # the sigmoid there
        self.jump = 0.0 if offset is None else offset - self.level - start

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
        return Kernel(grid, torch.sigmoid, line), slope, self.start


class Pairs:
    """The sides of a block compared with the anchors, its first side, pair by pair."""

    def __init__(self, sides: Sequence[Tensor], steps: Sequence[StepFunction], elements: int):
        self.sides = sides
        self.steps = steps
        self.dtype = sides[0].dtype
        rows, anchors = sides[0].shape
        self.parts = chunks(anchors, rows * max(side.shape[1] for side in sides), elements)

    def count(self, side: int, part: slice, base: Tensor | float) -> Count:
        """Return ``base`` + the number of items of a side above the anchors in ``part`` (b, p)."""
        items = self.sides[side].unsqueeze(1)
        anchors = self.sides[0][:, part].unsqueeze(2)
        total, slope_of_pairs = self.steps[side].count(items, anchors, base)
        if slope_of_pairs is None:
            return total, None

        def derivative(weights: Tensor) -> tuple[Tensor, Tensor]:
            slope = slope_of_pairs()
            return torch.bmm(weights.unsqueeze(1), slope).squeeze(1), weights * slope.sum(2)

        return total, derivative


@dataclass(eq=False)
class PanelGrid:
    """Panels of equal ``width`` over the range of the scores, from ``low`` on.

    ``steps`` panels make the bend. On a panel a function is a sum of ``terms`` polynomials.
    """

    low: float
    panels: int
    width: float
    steps: int
    terms: int

    def __post_init__(self) -> None:
        orders = torch.arange(self.terms, dtype=torch.float64)
        angles = (orders + 0.5) * (math.pi / self.terms)
        self._nodes = torch.cos(angles)
        # values at the nodes to coefficients of Chebyshev polynomials
        self._transform = torch.cos(orders.unsqueeze(1) * angles) * (2.0 / self.terms)
        self._transform[0] *= 0.5

    @staticmethod
    def over(scores: Tensor, relation: Relation, tau: float, bend: float = 0.0) -> PanelGrid | None:
        """Return a grid over ``scores / tau``, or None where pairs have to be compared one by one.

        That is: no query has many positives, scores are not finite or spread too widely, or lie on
        a GPU, which would have to wait for their range. ``bend`` is in units of ``tau``.
        """
        large = any(group.columns.shape[1] >= MANY_POSITIVES for group in relation.groups)
        if not large or scores.device.type != "cpu":
            return None
        low, high = (float(value) / tau for value in scores.aminmax())
        steps = math.ceil(bend / WIDTH)
        width = bend / steps if steps else WIDTH
        terms = TERMS[scores.dtype]
        if not math.isfinite(high - low) or (high - low) / width + 1 > MOST_TERMS // terms:
            return None
        # half a panel of margin, so that rounding cannot put the extremes outside
        return PanelGrid(low - width / 2, math.ceil((high - low) / width) + 1, width, steps, terms)

    def locate(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the panels (b, n) of values (b, n) and the polynomials there (T, b, n)."""
        position = (values - self.low) / self.width
        panel = position.floor().clamp_(0, self.panels - 1)
        inside = (position - panel).mul_(2.0).sub_(1.0)
        terms = values.new_empty(self.terms, *values.shape)
        terms[0], terms[1] = 1.0, inside
        twice = inside.mul_(2.0)
        for order in range(2, self.terms):
            torch.mul(twice, terms[order - 1], out=terms[order]).sub_(terms[order - 2])
        return panel.long(), terms

    def coefficients(self, curve: Curve, step: int) -> Tensor:
        """Return the expansion (T, T) of ``curve(x - y)`` for x ``step`` panels above y."""
        x = self._nodes.unsqueeze(1)
        y = self._nodes
        values = curve((x - y) * (self.width / 2) + step * self.width)
        return self._transform @ values @ self._transform.T


def bell(values: Tensor) -> Tensor:
    """Return the derivative of the sigmoid."""
    return torch.sigmoid(values) * torch.sigmoid(-values)


class Kernel:
    """A function of a difference of scores: ``below`` up to the grid's bend, ``above`` beyond."""

    def __init__(self, grid: PanelGrid, below: Curve, above: Curve | None = None):
        self.grid = grid
        self.bends = above is not None
        # expansions (T, T) of both pieces, between panels where the difference passes the bend
        self.at_bend = [grid.coefficients(curve, grid.steps) for curve in (below, above or below)]
        blocks = []
        for step in range(1 - grid.panels, grid.panels):
            if above is None or step < grid.steps:
                blocks.append(grid.coefficients(below, step))
            elif step > grid.steps:
                blocks.append(grid.coefficients(above, step))
            else:
                blocks.append(torch.zeros_like(self.at_bend[0]))
        panel = torch.arange(grid.panels)
        # [panel of x, panel of y, term of x, term of y]
        full = torch.stack(blocks)[panel.unsqueeze(1) - panel + grid.panels - 1]
        self.matrix = full.transpose(1, 2).reshape(grid.panels * grid.terms, -1)


class Points:
    """Scores (b, n) on a grid; ``values`` has them in float64, ascending in each row."""

    def __init__(self, grid: PanelGrid, values: Tensor):
        ascending, self.order = torch.sort(values, dim=1)
        self.grid = grid
        self.values = ascending.double()
        self.panel, self.terms = grid.locate(self.values)
        edges = torch.arange(grid.panels + 1).expand(len(values), -1).contiguous()
        self._edges = torch.searchsorted(self.panel, edges)

    @cached_property
    def _running(self) -> Tensor:
        return _running(self.terms)

    def unsort(self, values: Tensor) -> Tensor:
        """Return values (b, n) at these points in the order in which the scores were given."""
        return torch.empty_like(values).scatter_(1, self.order, values)

    def sums(
        self, kernel: Kernel, at: Points, *, rising: bool, weights: Tensor | None = None
    ) -> Tensor:
        """Return at the points (b, m) of ``at`` the sum of weight x kernel over these (b, n).

        The difference is this point minus the other with ``rising``, else the other minus this one.
        """
        grid = self.grid
        rows = len(self.values)
        matrix = kernel.matrix
        running = self._running if weights is None else _running(self.terms * weights)
        moments = _pick(running, self._edges).diff(dim=2)
        flat = moments.permute(1, 2, 0).reshape(rows, -1)
        local = (
            (flat @ (matrix if rising else matrix.T))
            .view(rows, grid.panels, grid.terms)
            .permute(2, 0, 1)
        )
        result = (_pick(local.contiguous(), at.panel) * at.terms).sum(0)
        return result.add_(self._at_bend(kernel, running, at, rising)) if kernel.bends else result

    def _at_bend(self, kernel: Kernel, running: Tensor, at: Points, rising: bool) -> Tensor:
        """Return the sums over the one panel in which the difference passes the bend."""
        grid = self.grid
        sign = 1 if rising else -1
        panel = at.panel + sign * grid.steps
        inside = (panel >= 0) & (panel < grid.panels)
        panel.clamp_(0, grid.panels - 1)
        first = self._edges.gather(1, panel)
        last = self._edges.gather(1, panel + 1)
        bound = at.values + sign * grid.steps * grid.width
        # rising: points right of the bound differ by more than the bend; falling: those left of it
        split = torch.searchsorted(self.values, bound, right=rising)
        split = torch.minimum(torch.maximum(split, first), last)
        middle = _pick(running, split)
        left = middle - _pick(running, first)
        right = _pick(running, last) - middle
        below, above = (left, right) if rising else (right, left)
        total: Tensor | float = 0.0
        for block, moments in zip(kernel.at_bend, (below, above), strict=True):
            local = torch.einsum("xy,xbm->ybm" if rising else "yx,xbm->ybm", block, moments)
            total = total + (local * at.terms).sum(0)
        return total * inside


def _running(terms: Tensor) -> Tensor:
    """Return the sums (T, b, n + 1) of terms (T, b, n) over the first 0, 1, .. n points."""
    result = terms.new_empty(*terms.shape[:2], terms.shape[2] + 1)
    result[:, :, 0] = 0.0
    torch.cumsum(terms, dim=2, out=result[:, :, 1:])
    return result


def _pick(columns: Tensor, indices: Tensor) -> Tensor:
    """Return columns (T, b, n) at indices (b, m), (T, b, m)."""
    terms, rows, count = columns.shape
    offset = torch.arange(rows).unsqueeze(1) * count
    flat = columns.view(terms, -1).index_select(1, (indices + offset).view(-1))
    return flat.view(terms, *indices.shape)


class Panels:
    """The sides of a block compared with its anchors, the first side, in linear time.

    It counts and differentiates as ``Pairs`` does, for all anchors at once, in float64.
    """

    dtype = torch.float64
    parts = (slice(None),)

    def __init__(self, sides: Sequence[Tensor], steps: Sequence[Expansion], grid: PanelGrid):
        self.sides = [Points(grid, side) for side in sides]
        self.steps = steps

    def count(self, side: int, part: slice, base: Tensor | float) -> Count:
        """Return ``base`` + the number of items of a side above the anchors (b, p)."""
        items, anchors, (curve, slope, jump) = self.sides[side], self.sides[0], self.steps[side]
        total = torch.zeros_like(anchors.values)
        if curve is not None:
            total += items.sums(curve, anchors, rising=True)
        if jump:
            total += jump * at_or_above(items.values, anchors.values)
        total = base + anchors.unsort(total)
        if slope is None:
            return total, None

        def derivative(weights: Tensor) -> tuple[Tensor, Tensor]:
            weights = weights.gather(1, anchors.order)
            of_items = anchors.sums(slope, items, rising=False, weights=weights)
            of_anchors = weights * items.sums(slope, anchors, rising=True)
            return items.unsort(of_items), anchors.unsort(of_anchors)

        return total, derivative
