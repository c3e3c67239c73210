"""Sums over pairs of scores in time linear in the scores: kernels expanded in Chebyshev polynomials on panels.

The direct kernels look at each pair (positive, other item). For a class with hundreds of images nearly all the
time goes there, although the sums depend on one variable only, the difference of two scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor

from benchmark.losses.kernels.relation import Relation

Curve = Callable[[Tensor], Tensor]

# A sigmoid in units of its own width has its nearest poles at distance pi. On panels of this width the error of an
# expansion shrinks 5.2 times with each term: to 1e-13 of the largest value in float64, 1e-8 in float32.
WIDTH = 2.5
TERMS = {torch.float32: 11, torch.float64: 18}
# Above this many terms in all, the matrix between panels would cost more than it saves.
MOST_TERMS = 3072
# From this many positives on, the expansion takes less time than looking at each pair.
FROM_POSITIVES = 96
# Rows of this many scores in all are handled at once: their polynomials fit into the cache.
ELEMENTS = 2**16


class Grid:
    """Panels of equal width over the range of the scores; the bend is a whole number ``steps`` of panels."""

    def __init__(self, low: float, panels: int, width: float, steps: int, terms: int):
        self.low, self.panels, self.width, self.steps, self.terms = low, panels, width, steps, terms
        angles = (torch.arange(terms, dtype=torch.float64) + 0.5) * (math.pi / terms)
        self._nodes = torch.cos(angles)
        # values at the nodes to coefficients of Chebyshev polynomials
        orders = torch.arange(terms, dtype=torch.float64).unsqueeze(1)
        self._transform = torch.cos(orders * angles) * (2.0 / terms)
        self._transform[0] *= 0.5

    @staticmethod
    def over(scores: Tensor, relation: Relation, tau: float, bend: float = 0.0) -> Grid | None:
        """Returns a grid over ``scores / tau``, or None where the direct kernels are to be used: no query has
        many positives, scores that are not finite, too wide a range, or a GPU, which would have to wait.

        ``bend`` in units of ``tau``.
        """
        large = any(group.columns.shape[1] >= FROM_POSITIVES for group in relation.groups)
        if not large or scores.device.type != "cpu":
            return None
        low, high = (float(value) / tau for value in scores.aminmax())
        steps = math.ceil(bend / WIDTH)
        width = bend / steps if steps else WIDTH
        terms = TERMS[scores.dtype]
        if not math.isfinite(high - low) or (high - low) / width + 1 > MOST_TERMS // terms:
            return None
        # half a panel of margin, so that rounding cannot put the extremes outside
        return Grid(low - width / 2, math.ceil((high - low) / width) + 1, width, steps, terms)

    def locate(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the panels (b, n) of values (b, n) and the polynomials there (T, b, n)."""
        place = (values - self.low) / self.width
        panel = place.floor().clamp_(0, self.panels - 1)
        inside = (place - panel).mul_(2.0).sub_(1.0)
        terms = values.new_empty(self.terms, *values.shape)
        terms[0], terms[1] = 1.0, inside
        twice = inside.mul_(2.0)
        for order in range(2, self.terms):
            torch.mul(twice, terms[order - 1], out=terms[order]).sub_(terms[order - 2])
        return panel.long(), terms

    def coefficients(self, curve: Curve, step: int) -> Tensor:
        """Returns the expansion (T, T) of ``curve(x - y)`` for x a number of ``step`` panels above y."""
        x, y = self._nodes.unsqueeze(1), self._nodes
        values = curve((x - y) * (self.width / 2) + step * self.width)
        return self._transform @ values @ self._transform.T


def bell(values: Tensor) -> Tensor:
    """Returns the derivative of the sigmoid."""
    return torch.sigmoid(values) * torch.sigmoid(-values)


class Kernel:
    """A function of the difference of two scores: ``below`` up to the bend of a grid, ``above`` beyond it."""

    def __init__(self, grid: Grid, below: Curve, above: Curve | None = None):
        self.grid, self.bends = grid, above is not None
        # expansions (T, T) of the two pieces, between panels among which the difference passes the bend
        self.at_bend = [grid.coefficients(curve, grid.steps) for curve in (below, above or below)]
        blocks = []
        for step in range(1 - grid.panels, grid.panels):
            if not self.bends or step < grid.steps:
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
    """Scores (b, n) on a grid: sources of sums, and places to evaluate them at; ``values`` ascend in each row."""

    def __init__(self, grid: Grid, values: Tensor):
        ascending, self._order = torch.sort(values, dim=1)
        self.grid, self.values = grid, ascending.double()
        self.panel, self.terms = grid.locate(self.values)
        edges = torch.arange(grid.panels + 1).expand(len(values), -1).contiguous()
        self._edges = torch.searchsorted(self.panel, edges)

    @cached_property
    def _unweighted(self) -> Tensor:
        return _running(self.terms)

    def at_or_above(self, bounds: Tensor) -> Tensor:
        """Returns how many of these points are at or above each bound (b, m), as floating point."""
        return (self.values.shape[1] - torch.searchsorted(self.values, bounds)).to(bounds.dtype)

    def unsort(self, values: Tensor, dtype: torch.dtype) -> Tensor:
        """Returns values (b, n) at these points, in the order in which the scores were given."""
        return torch.empty_like(values, dtype=dtype).scatter_(1, self._order, values.to(dtype))

    def sums(
        self, kernel: Kernel, at: Points, *, rising: bool, weights: Tensor | None = None
    ) -> Tensor:
        """Returns at each point (b, m) of ``at`` the sum of weight x kernel over these points (b, n).

        The difference is this point minus the other with ``rising``, else the other minus this one.
        """
        grid, rows, matrix = self.grid, len(self.values), kernel.matrix
        running = self._unweighted if weights is None else _running(self.terms * weights)
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
        """Returns the sums over the panel in which the difference passes the bend, part below and part above."""
        grid = self.grid
        sign = 1 if rising else -1
        panel = at.panel + sign * grid.steps
        inside = (panel >= 0) & (panel < grid.panels)
        panel.clamp_(0, grid.panels - 1)
        first, last = self._edges.gather(1, panel), self._edges.gather(1, panel + 1)
        bound = at.values + sign * grid.steps * grid.width
        # rising: differences above the bend are those of points right of the bound; falling: left of it
        split = torch.searchsorted(self.values, bound, right=rising)
        split = torch.minimum(torch.maximum(split, first), last)
        middle = _pick(running, split)
        left, right = middle - _pick(running, first), _pick(running, last) - middle
        below, above = (left, right) if rising else (right, left)
        total = 0.0
        for block, moments in zip(kernel.at_bend, (below, above), strict=True):
            local = torch.einsum("xy,xbm->ybm" if rising else "yx,xbm->ybm", block, moments)
            total = total + (local * at.terms).sum(0)
        return total * inside


def _running(terms: Tensor) -> Tensor:
    """Returns the sums of terms (T, b, n) over the first 0, 1, .. n points of each row, (T, b, n + 1)."""
    result = terms.new_empty(*terms.shape[:2], terms.shape[2] + 1)
    result[:, :, 0] = 0.0
    torch.cumsum(terms, dim=2, out=result[:, :, 1:])
    return result


def _pick(columns: Tensor, places: Tensor) -> Tensor:
    """Returns columns (T, b, n) at places (b, m), (T, b, m)."""
    terms, rows, count = columns.shape
    offset = torch.arange(rows).unsqueeze(1) * count
    flat = columns.view(terms, -1).index_select(1, (places + offset).view(-1))
    return flat.view(terms, *places.shape)
