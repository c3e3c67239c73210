"""SupAP: an upper bound of 1 - AP with gradient wherever the ranking is wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from benchmark.losses import LOSSES
from benchmark.losses.base import RankingLoss
from benchmark.losses.blocks import block_elements, chunks, count_at_least, flush_tails
from benchmark.losses.negatives import Negatives
from benchmark.options import option


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
    of |P| x R), memory O(Q x R).
    """

    @dataclass(frozen=True, kw_only=True)
    class Config:
        tau: float = option(0.01, above=0.0, help="sigmoid temperature, cosine units")
        rho: float = option(100.0, at_least=0.0, help="slope beyond delta, per unit of cosine")
        delta: float = option(0.05, at_least=0.0, help="score difference where the linear part begins")
        offset: float | None = option(
            None, help="value where the linear part begins; null: sigmoid(delta / tau) + start"
        )
        start: float = option(0.5, at_least=0.0, help="added to the sigmoid at and above a tie")
        include_query: bool = option(
            True, help="count a query of the batch as one of its own positives, as the published code does"
        )

    def rank(self, scores, relation, scale, *, gradient, generator):
        config = self.config
        tau, include = config.tau, config.include_query
        # in units of tau: bend = delta, and the slopes of the two parts
        bend = config.delta / tau
        level = 1.0 / (1.0 + math.exp(-bend)) if bend < 700 else 1.0
        jump = 0.0 if config.offset is None else config.offset - level - config.start
        linear = config.rho * tau
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
            own_grad = torch.empty_like(own) if gradient else None
            for part in chunks(count, len(rows) * max(width, count), elements):
                anchor = own[:, part].unsqueeze(2)
                rank_positive = count_at_least(own.unsqueeze(1), anchor)
                gap = flush_tails(torch.sub(negatives.scores.unsqueeze(1), anchor))
                curve = gap.clamp(max=bend).sigmoid_()
                rank = rank_positive + curve.sum(2)
                if config.start:
                    rank += config.start * count_at_least(gap, gap.new_zeros(()))
                # from here on ``gap`` holds the excess over delta, then the indicator of an excess
                gap.sub_(bend).relu_()
                rank += linear * gap.sum(2)
                if gradient or jump:
                    gap.gt_(0.0)
                if jump:
                    rank += jump * gap.sum(2)
                precision += (rank_positive / rank).sum(1)
                if not gradient:
                    continue
                # beyond delta the clamped sigmoid has the constant slope level (1 - level) where rho belongs
                slope = curve.addcmul_(curve, curve, value=-1).add_(gap, alpha=linear - level * (1.0 - level))
                down = (scale / (count * tau)) * rank_positive / rank.square()
                negative_grad += torch.bmm(down.unsqueeze(1), slope).squeeze(1)
                own_grad[:, part] = -down * slope.sum(2)
            values[block.queries] = 1.0 - precision / count
            if gradient:
                row_grad = negatives.place(negative_grad, spare=rows)
                derivative[block.queries] = row_grad.scatter_(1, block.columns, own_grad)
        return values, derivative
