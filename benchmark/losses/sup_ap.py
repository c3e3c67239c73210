"""SupAP: an upper bound of 1 - AP with gradient wherever the ranking is wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.base import RankingLoss
from benchmark.losses.kernels.blocks import block_elements, chunks, count_at_least, flush_tails
from benchmark.losses.kernels.negatives import Negatives
from benchmark.losses.kernels.panels import ELEMENTS, FROM_POSITIVES, Grid, Kernel, Points, bell


@LOSSES.register("sup_ap", display="SupAP", paper="Ramzi et al., NeurIPS 2021")
class SupAP(RankingLoss):
    """Mean over queries of 1 - AP, with exact ranks among positives and an upper bound of the rank among
    negatives (ROADMAP, Eq. 3 to 5).

    For query q with positives P, negatives N and score s_k of item k::

        r+_k = 1 + number of j in P, j != k, with s_j >= s_k             (no gradient)
        r-_k = sum over j in N of h(s_j - s_k)
        h(t) = sigmoid(t / tau)                    for t < 0
               sigmoid(t / tau) + start            for 0 <= t <= delta
               rho (t - delta) + offset            for t > delta
        AP_q = 1/|P| sum over k in P of r+_k / (r+_k + r-_k)

    ``offset`` None makes h continuous at delta: sigmoid(delta / tau) + start. At a tie (t = 0) the paper's
    two cases overlap; the upper one is taken, because only then is h an upper bound of the step. Time O(sum
    of |P| x R), memory O(Q x R). On a CPU, queries with many positives take O(|P| + R) each
    (``benchmark.losses.kernels.panels``).
    """

    @dataclass(frozen=True, kw_only=True)
    class Config:
        tau: float = option(0.01, above=0.0, help="sigmoid temperature, cosine units")
        rho: float = option(100.0, at_least=0.0, help="slope beyond delta, per unit of cosine")
        delta: float = option(
            0.05, at_least=0.0, help="score difference where the linear part begins"
        )
        offset: float | None = option(
            None, help="value where the linear part begins; null: sigmoid(delta / tau) + start"
        )
        start: float = option(0.5, at_least=0.0, help="added to the sigmoid at and above a tie")
        include_query: bool = option(
            True,
            help="count a query of the batch as one of its own positives, as the published code does",
        )

    def rank(self, scores, relation, scale, *, gradient, generator):
        config = self.config
        tau, include = config.tau, config.include_query
        tau, include = config.tau, config.include_query
        bound = _Bound.of(config)
        elements = block_elements(scores.device)
        values = scores.new_zeros(relation.queries)
        derivative = torch.zeros_like(scores) if gradient else None
        grid = Grid.over(scores, relation, tau, bound.bend)
        kernels = None if grid is None else bound.kernels(grid)
        for block in relation.blocks(
            include, elements, linear=None if grid is None else (FROM_POSITIVES, ELEMENTS)
        ):
            rows = scores[block.queries] / tau
            own = rows.gather(1, block.columns)
            negatives = Negatives.of(rows, relation, block)
            count = own.shape[1]
            step = scale / (count * tau) if gradient else None
            if grid is not None and count >= FROM_POSITIVES:
                precision, own_grad, negative_grad = _by_panels(
                    own, negatives.scores, bound, *kernels, step
                )
            else:
                precision, own_grad, negative_grad = _by_pairs(
                    own, negatives.scores, bound, elements, step
                )
            values[block.queries] = 1.0 - precision / count
            if gradient:
                row_grad = negatives.place(negative_grad, spare=rows)
                derivative[block.queries] = row_grad.scatter_(1, block.columns, own_grad)
        return values, derivative


@dataclass(frozen=True)
class _Bound:
    """The upper bound h in units of tau: a sigmoid, ``start`` more from 0 on; beyond ``bend`` a line of slope
    ``linear`` that begins at ``level`` + ``start`` + ``jump``, where ``level`` is the sigmoid at the bend."""

    bend: float
    start: float
    linear: float
    level: float
    jump: float

    @staticmethod
    def of(config: SupAP.Config) -> _Bound:
        bend = config.delta / config.tau
        level = 1.0 / (1.0 + math.exp(-bend)) if bend < 700 else 1.0
        jump = 0.0 if config.offset is None else config.offset - level - config.start
        return _Bound(bend, config.start, config.rho * config.tau, level, jump)

    def kernels(self, grid: Grid) -> tuple[Kernel, Kernel]:
        """Returns h without ``start`` and its slope, for sums over all pairs."""
        line = Kernel(
            grid,
            torch.sigmoid,
            lambda gap: self.linear * (gap - self.bend) + self.level + self.jump,
        )
        return line, Kernel(grid, bell, lambda gap: torch.full_like(gap, self.linear))


def _by_pairs(
    own: Tensor, negatives: Tensor, bound: _Bound, elements: int, step: float | None
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Returns |P| x AP (b,) of positives (b, P) and negatives (b, N), scores in units of tau, and ``step`` times
    the derivative of its negative by both, None without ``step``."""
    count, width = own.shape[1], negatives.shape[1]
    precision = own.new_zeros(len(own))
    negative_grad = torch.zeros_like(negatives) if step is not None else None
    own_grad = torch.empty_like(own) if step is not None else None
    for part in chunks(count, len(own) * max(width, count), elements):
        anchor = own[:, part].unsqueeze(2)
        rank_positive = count_at_least(own.unsqueeze(1), anchor)
        gap = flush_tails(torch.sub(negatives.unsqueeze(1), anchor))
        curve = gap.clamp(max=bound.bend).sigmoid_()
        rank = rank_positive + curve.sum(2)
        if bound.start:
            rank += bound.start * count_at_least(gap, gap.new_zeros(()))
        # from here on ``gap`` holds the excess over delta, then the indicator of an excess
        gap.sub_(bound.bend).relu_()
        rank += bound.linear * gap.sum(2)
        if step is not None or bound.jump:
            gap.gt_(0.0)
        if bound.jump:
            rank += bound.jump * gap.sum(2)
        precision += (rank_positive / rank).sum(1)
        if step is None:
            continue
        # beyond delta the clamped sigmoid has the constant slope level (1 - level) where rho belongs
        correction = bound.linear - bound.level * (1.0 - bound.level)
        slope = curve.addcmul_(curve, curve, value=-1).add_(gap, alpha=correction)
        down = step * rank_positive / rank.square()
        negative_grad += torch.bmm(down.unsqueeze(1), slope).squeeze(1)
        own_grad[:, part] = -down * slope.sum(2)
    return precision, own_grad, negative_grad


def _by_panels(
    own: Tensor, negatives: Tensor, bound: _Bound, curve: Kernel, slope: Kernel, step: float | None
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Returns the same as ``_by_pairs``, in time linear in P + N."""
    positive, negative = Points(curve.grid, own), Points(curve.grid, negatives)
    rank_positive = positive.at_or_above(positive.values)
    rank = rank_positive + negative.sums(curve, positive, rising=True)
    if bound.start:
        rank += bound.start * negative.at_or_above(positive.values)
    precision = (rank_positive / rank).sum(1).to(own.dtype)
    if step is None:
        return precision, None, None
    down = step * rank_positive / rank.square()
    own_grad = -down * negative.sums(slope, positive, rising=True)
    negative_grad = positive.sums(slope, negative, rising=False, weights=down)
    return (
        precision,
        positive.unsort(own_grad, own.dtype),
        negative.unsort(negative_grad, own.dtype),
    )
