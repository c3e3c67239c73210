"""BlackBoxAP: exact ranks, differentiated by perturbing the ranker."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmark.core.errors import RunError
from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.base import RankingLoss
from benchmark.losses.kernels.blocks import block_elements, chunks, count_at_least
from benchmark.losses.kernels.negatives import Negatives

# From this many positives on, sorting takes less time than comparing all pairs; the counts are the same.
SORT_FROM_POSITIVES = 64


@LOSSES.register(
    "blackbox_ap", display="BlackBoxAP", paper="Rolinek et al., CVPR 2020", stochastic=True
)
class BlackBoxAP(RankingLoss):
    """Mean over queries of the exact 1 - AP; the gradient is a difference quotient of the ranker.

    Ranks are divided by the number R of ranked items. With g = d loss / d ranks, the gradient with respect
    to the scores s is (ranks(s + lambda g) - ranks(s)) / lambda. Only positives have g != 0, so a
    negative's rank changes by the number of positives that overtake it: for few positives no sorting, time
    O(sum of |P| x R); for many one sort, O(Q x R log R). Memory O(Q x R). Tied items share the worst of
    their ranks, so that collapsed embeddings are not called perfectly ranked.

    In training the scores are first disturbed to create a margin: positives lose, negatives gain
    margin/2 x |standard normal|, drawn from ``generator`` in every call (needed when margin > 0), as the
    published code of ROADMAP does; with ``fixed_margin`` margin/2 itself, as the loss's own paper has it.
    g is that of the mean loss itself: whatever multiplies the loss afterwards scales the gradient.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config:
        lambda_val: float = option(4.0, above=0.0, help="size of the step that perturbs the scores")
        margin: float = option(
            0.02, at_least=0.0, help="scale of what is added against the right ranking"
        )
        fixed_margin: bool = option(
            False, help="add half the margin itself, not random amounts of that scale"
        )
        include_query: bool = option(
            True,
            help="count a query of the batch as one of its own positives, as the published code does",
        )

    def rank(self, scores, relation, scale, *, gradient, generator):
        include, step = self.config.include_query, self.config.lambda_val
        noise = self._noise(scores, generator)
        ranked = relation.references - (relation.own and not include)
        elements = block_elements(scores.device)
        # comparisons hide NaN; a NaN anywhere in a row must show in its value
        values = scores.sum(1) * 0.0
        derivative = torch.zeros_like(scores) if gradient else None
        for block in relation.blocks(include, elements, linear=(SORT_FROM_POSITIVES, elements)):
            rows = scores[block.queries]
            own = rows.gather(1, block.columns)
            if noise is not None:
                push = noise[block.queries]
                rows += push
                own -= push.gather(1, block.columns)
            negatives = Negatives.of(rows, relation, block)
            count = own.shape[1]
            ranker = _Sorted if count >= SORT_FROM_POSITIVES else _Compared
            ranks = ranker(own, negatives.scores, elements)
            rank = ranks.positive + ranks.negative
            values[block.queries] += 1.0 - (ranks.positive / rank).sum(1) / count
            if not gradient:
                continue
            moved = own + (step * scale * ranked / count) * ranks.positive / rank.square()
            own_grad, negative_grad = ranks.changes(moved)
            row_grad = negatives.place(negative_grad, spare=rows)
            row_grad.scatter_(1, block.columns, own_grad)
            derivative[block.queries] = row_grad.div_(step * ranked)
        return values, derivative

    def _noise(self, scores: Tensor, generator: torch.Generator | None) -> Tensor | None:
        """Returns what negatives gain and positives lose (Q, R), or None without a margin."""
        if self.config.margin == 0.0:
            return None
        if self.config.fixed_margin:
            return scores.new_full((1, 1), self.config.margin / 2).expand_as(scores)
        if generator is None:
            raise RunError(
                "blackbox_ap draws noise when margin > 0: pass generator=torch.Generator(), or set fixed_margin "
                "or a margin of 0"
            )
        noise = torch.randn(
            scores.shape, generator=generator, dtype=scores.dtype, device=generator.device
        )
        return noise.abs_().mul_(self.config.margin / 2).to(scores.device)


class _Compared:
    """Ranks of positives (b, P) among themselves and among negatives (b, N), by comparing all pairs."""

    def __init__(self, own: Tensor, negatives: Tensor, elements: int):
        self.own, self.negatives = own, negatives
        self._parts = chunks(
            own.shape[1], len(own) * max(negatives.shape[1], own.shape[1]), elements
        )
        self.positive, self.negative = (
            torch.cat(
                [
                    count_at_least(items.unsqueeze(1), own[:, part].unsqueeze(2))
                    for part in self._parts
                ],
                dim=1,
            )
            for items in (own, negatives)
        )

    def changes(self, moved: Tensor) -> tuple[Tensor, Tensor]:
        """Returns by how much the ranks of positives (b, P) and negatives (b, N) change when the positives move."""
        negative_change = torch.zeros_like(self.negatives)
        own_change = torch.empty_like(moved)
        for part in self._parts:
            before, after = self.own[:, part].unsqueeze(2), moved[:, part].unsqueeze(2)
            overtaken = torch.ge(self.negatives.unsqueeze(1), before, out=moved.new_empty(0))
            overtaken -= torch.ge(self.negatives.unsqueeze(1), after, out=moved.new_empty(0))
            negative_change += overtaken.sum(1)
            own_change[:, part] = count_at_least(moved.unsqueeze(1), after) - self.positive[:, part]
            own_change[:, part] -= overtaken.sum(2)
        return own_change, negative_change


class _Sorted:
    """The same ranks by sorting: time O((P + N) log(P + N)) instead of O(P x N)."""

    def __init__(self, own: Tensor, negatives: Tensor, elements: int):
        self.negatives = negatives
        self._own, self._ascending = own.sort(1).values, negatives.sort(1).values
        self.positive, self.negative = _at_least(self._own, own), _at_least(self._ascending, own)

    def changes(self, moved: Tensor) -> tuple[Tensor, Tensor]:
        """Returns by how much the ranks of positives (b, P) and negatives (b, N) change when the positives move."""
        ordered = moved.sort(1).values
        own_change = (
            _at_least(ordered, moved)
            + _at_least(self._ascending, moved)
            - self.positive
            - self.negative
        )
        overtaken = torch.searchsorted(self._own, self.negatives, right=True)
        overtaken -= torch.searchsorted(ordered, self.negatives, right=True)
        return own_change, overtaken.to(moved.dtype)


def _at_least(ascending: Tensor, bounds: Tensor) -> Tensor:
    """Returns how many items of each ascending row (b, n) are at or above bounds (b, m), as floating point."""
    return (ascending.shape[1] - torch.searchsorted(ascending, bounds)).to(bounds.dtype)
