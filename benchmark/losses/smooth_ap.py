"""SmoothAP: ranks counted through a sigmoid."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from benchmark.losses import LOSSES
from benchmark.losses.base import RankingLoss
from benchmark.losses.blocks import block_elements, chunks, flush_tails
from benchmark.losses.negatives import Negatives
from benchmark.options import option


@LOSSES.register("smooth_ap", display="SmoothAP", paper="Brown et al., ECCV 2020")
class SmoothAP(RankingLoss):
    """Mean over queries of 1 - AP, with the step in each rank replaced by a sigmoid (Smooth-AP, Eq. 5 to 7).

    For query q with positives P and score s_k of item k::

        r+_k = 1 + sum over j in P, j != k, of sigmoid((s_j - s_k) / tau)
        r_k  = 1 + sum over all j != k of sigmoid((s_j - s_k) / tau)
        AP_q = 1/|P| sum over k in P of r+_k / r_k

    Only rows of positives are scored: time O(sum of |P| x R), memory O(Q x R).
    """

    @dataclass(frozen=True, kw_only=True)
    class Config:
        tau: float = option(0.01, above=0.0, help="sigmoid temperature, cosine units")
        include_query: bool = option(
            True, help="count a query of the batch as one of its own positives, as the published code does"
        )

    def rank(self, scores, relation, scale, *, gradient, generator):
        tau, include = self.config.tau, self.config.include_query
        elements = block_elements(scores.device)
        values = scores.new_zeros(relation.queries)
        derivative = torch.zeros_like(scores) if gradient else None
        for block in relation.blocks(include, elements):
            rows = scores[block.queries] / tau
            own = rows.gather(1, block.columns)
            negatives = Negatives.of(rows, relation, block)
            count, width = own.shape[1], negatives.scores.shape[1]
            precision = torch.zeros_like(values[block.queries])
            negative_grad = torch.zeros_like(negatives.scores) if gradient else None
            own_grad = torch.zeros_like(own) if gradient else None
            for part in chunks(count, len(rows) * max(width, count), elements):
                anchor = own[:, part].unsqueeze(2)
                above = flush_tails(torch.sub(negatives.scores.unsqueeze(1), anchor)).sigmoid_()
                above_positive = flush_tails(torch.sub(own.unsqueeze(1), anchor)).sigmoid_()
                # the sum contains the item itself as sigmoid(0) = 0.5, hence 0.5 more instead of 1
                rank_positive = above_positive.sum(2).add_(0.5)
                rank = rank_positive + above.sum(2)
                precision += (rank_positive / rank).sum(1)
                if not gradient:
                    continue
                # derivative of the loss by the sigmoid of a negative (down) and of a positive (minus up)
                step = scale / (count * tau)
                down = step * rank_positive / rank.square()
                up = step / rank - down
                slope = above.addcmul_(above, above, value=-1)
                slope_positive = above_positive.addcmul_(above_positive, above_positive, value=-1)
                negative_grad += torch.bmm(down.unsqueeze(1), slope).squeeze(1)
                own_grad -= torch.bmm(up.unsqueeze(1), slope_positive).squeeze(1)
                own_grad[:, part] += up * slope_positive.sum(2) - down * slope.sum(2)
            values[block.queries] = 1.0 - precision / count
            if gradient:
                row_grad = negatives.place(negative_grad, spare=rows)
                derivative[block.queries] = row_grad.scatter_(1, block.columns, own_grad)
        return values, derivative
