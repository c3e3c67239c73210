"""SmoothAP: ranks counted through a sigmoid."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.base import RankingLoss
from benchmark.losses.kernels.blocks import block_elements, chunks, flush_tails
from benchmark.losses.kernels.negatives import Negatives
from benchmark.losses.kernels.panels import ELEMENTS, FROM_POSITIVES, Grid, Kernel, Points, bell


@LOSSES.register("smooth_ap", display="SmoothAP", paper="Brown et al., ECCV 2020")
class SmoothAP(RankingLoss):
    """Mean over queries of 1 - AP, with the step in each rank replaced by a sigmoid (Smooth-AP, Eq. 5 to 7).

    For query q with positives P and score s_k of item k::

        r+_k = 1 + sum over j in P, j != k, of sigmoid((s_j - s_k) / tau)
        r_k  = 1 + sum over all j != k of sigmoid((s_j - s_k) / tau)
        AP_q = 1/|P| sum over k in P of r+_k / r_k

    Only rows of positives are scored: time O(sum of |P| x R), memory O(Q x R). On a CPU, queries with many
    positives take O(|P| + R) each (``benchmark.losses.kernels.panels``).
    """

    @dataclass(frozen=True, kw_only=True)
    class Config:
        tau: float = option(0.01, above=0.0, help="sigmoid temperature, cosine units")
        include_query: bool = option(
            True,
            help="count a query of the batch as one of its own positives, as the published code does",
        )

    def rank(self, scores, relation, scale, *, gradient, generator):
        tau, include = self.config.tau, self.config.include_query
        elements = block_elements(scores.device)
        values = scores.new_zeros(relation.queries)
        derivative = torch.zeros_like(scores) if gradient else None
        grid = Grid.over(scores, relation, tau)
        kernels = None if grid is None else (Kernel(grid, torch.sigmoid), Kernel(grid, bell))
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
                    own, negatives.scores, *kernels, step
                )
            else:
                precision, own_grad, negative_grad = _by_pairs(
                    own, negatives.scores, elements, step
                )
            values[block.queries] = 1.0 - precision / count
            if gradient:
                row_grad = negatives.place(negative_grad, spare=rows)
                derivative[block.queries] = row_grad.scatter_(1, block.columns, own_grad)
        return values, derivative


def _by_pairs(
    own: Tensor, negatives: Tensor, elements: int, step: float | None
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Returns |P| x AP (b,) of positives (b, P) and negatives (b, N), scores in units of tau, and ``step`` times
    the derivative of its negative by both, None without ``step``."""
    count, width = own.shape[1], negatives.shape[1]
    precision = own.new_zeros(len(own))
    negative_grad = torch.zeros_like(negatives) if step is not None else None
    own_grad = torch.zeros_like(own) if step is not None else None
    for part in chunks(count, len(own) * max(width, count), elements):
        anchor = own[:, part].unsqueeze(2)
        above = flush_tails(torch.sub(negatives.unsqueeze(1), anchor)).sigmoid_()
        above_positive = flush_tails(torch.sub(own.unsqueeze(1), anchor)).sigmoid_()
        # the sum contains the item itself as sigmoid(0) = 0.5, hence 0.5 more instead of 1
        rank_positive = above_positive.sum(2).add_(0.5)
        rank = rank_positive + above.sum(2)
        precision += (rank_positive / rank).sum(1)
        if step is None:
            continue
        # derivative of the loss by the sigmoid of a negative (down) and of a positive (minus up)
        down = step * rank_positive / rank.square()
        up = step / rank - down
        slope = above.addcmul_(above, above, value=-1)
        slope_positive = above_positive.addcmul_(above_positive, above_positive, value=-1)
        negative_grad += torch.bmm(down.unsqueeze(1), slope).squeeze(1)
        own_grad -= torch.bmm(up.unsqueeze(1), slope_positive).squeeze(1)
        own_grad[:, part] += up * slope_positive.sum(2) - down * slope.sum(2)
    return precision, own_grad, negative_grad


def _by_panels(
    own: Tensor, negatives: Tensor, curve: Kernel, slope: Kernel, step: float | None
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Returns the same as ``_by_pairs``, in time linear in P + N."""
    positive, negative = Points(curve.grid, own), Points(curve.grid, negatives)
    rank_positive = positive.sums(curve, positive, rising=True) + 0.5
    rank = rank_positive + negative.sums(curve, positive, rising=True)
    precision = (rank_positive / rank).sum(1).to(own.dtype)
    if step is None:
        return precision, None, None
    down = step * rank_positive / rank.square()
    up = step / rank - down
    negative_grad = positive.sums(slope, negative, rising=False, weights=down)
    own_grad = up * positive.sums(slope, positive, rising=True) - down * negative.sums(
        slope, positive, rising=True
    )
    own_grad -= positive.sums(slope, positive, rising=False, weights=up)
    return (
        precision,
        positive.unsort(own_grad, own.dtype),
        negative.unsort(negative_grad, own.dtype),
    )
