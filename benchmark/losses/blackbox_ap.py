"""BlackBoxAP: exact ranks, differentiated by perturbing the ranker."""

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.base import RankingLoss
from benchmark.losses.kernels.blocks import block_elements, block_losses, count_at_least
from benchmark.losses.kernels.measures import AveragePrecision
from benchmark.losses.kernels.ranking import NEGATIVES, POSITIVES
from benchmark.losses.kernels.relation import Group
from benchmark.losses.kernels.steps import Exact, Pairs

# From this many positives on, sorting takes less time than comparing pairs; the counts are equal.
SORT_FROM_POSITIVES = 64


@LOSSES.register(
    "blackbox_ap", display="BlackBoxAP", paper="Rolinek et al., CVPR 2020", stochastic=True
)
class BlackBoxAP(RankingLoss):
    """Mean over queries of the exact 1 - AP; the gradient is a difference quotient of the ranker.

    Ranks are divided by the number R of ranked items. With g = d loss / d ranks, the gradient with
    respect to the scores s is (ranks(s + lambda g) - ranks(s)) / lambda. Only positives have g not
    0, so the rank of a negative changes by the number of positives that overtake it: no sorting for
    few positives, time O(sum of |P| x R), one sort for many, O(Q x R log R). Memory O(Q x R). Tied
    items share the worst of their ranks, so that collapsed embeddings do not count as ranked.

    A margin disturbs the scores first: positives lose, negatives gain margin/2 x |standard normal|,
    drawn in every call, as the published code of ROADMAP does; with ``fixed_margin`` margin/2
    itself, as the loss's own paper has it. g is that of the mean loss: a factor on the loss scales
    the gradient.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config(RankingLoss.Config):
        lambda_val: float = option(
            4.0,
            above=0.0,
            help="size of the step that perturbs the scores",
            search={"times": [0.1, 10.0]},
        )
        margin: float = option(
            0.02,
            at_least=0.0,
            help="scale of what is added against the right ranking",
            search={"linear": [0.0, 0.1]},
        )
        fixed_margin: bool = option(
            False, help="add half the margin itself, not random amounts of that scale"
        )

    def rank(self, scores, relation, scale, gradient, generator):
        include, step = self.config.include_query, self.config.lambda_val
        ranked = relation.references - (relation.own and not include)
        elements, measure, every = block_elements(scores.device), AveragePrecision(), slice(None)
        noise = self._noise(scores, generator)

        def read(block: Group) -> tuple[Tensor, Tensor]:
            rows = scores[block.queries]
            own = rows.gather(1, block.columns)
            if noise is not None:
                push = noise[block.queries]
                rows += push
                own -= push.gather(1, block.columns)
            return rows, own

        def evaluate(block: Group, own: Tensor, negatives: Tensor) -> tuple[Tensor, ...]:
            count = own.shape[1]
            ranker = _Sorted if count >= SORT_FROM_POSITIVES else _Compared
            ranks = ranker(own, negatives, elements)
            rank = ranks.positive + ranks.negative
            losses = 1.0 - measure.gain(ranks.positive, rank, block, every) / count
            if not gradient:
                return (losses,)
            factor = step * scale * ranked / count
            _, falls = measure.slopes(ranks.positive, rank, factor, block, every)
            changes = ranks.changes(own + falls)
            return losses, *(change.div_(step * ranked) for change in changes)

        blocks = relation.blocks(include, elements, linear=(SORT_FROM_POSITIVES, elements))
        values, derivative = block_losses(scores, relation, blocks, read, evaluate, gradient)
        # comparisons hide NaN; a NaN anywhere in a row must show in its value
        return values + scores.sum(1) * 0.0, derivative

    def _noise(self, scores: Tensor, generator: torch.Generator | None) -> Tensor | None:
        """Return what negatives gain and positives lose (Q, R), or None without a margin."""
        if self.config.margin == 0.0:
            return None
        if self.config.fixed_margin:
            return scores.new_full((1, 1), self.config.margin / 2).expand_as(scores)
        device = scores.device if generator is None else generator.device
        noise = torch.randn(scores.shape, generator=generator, dtype=scores.dtype, device=device)
        return noise.abs_().mul_(self.config.margin / 2).to(scores.device)


class _Compared:
    """Ranks of positives (b, P) among themselves and among negatives (b, N), by comparing pairs."""

    def __init__(self, own: Tensor, negatives: Tensor, elements: int):
        self.own, self.negatives = own, negatives
        pairs = Pairs((own, negatives), (Exact(), Exact()), elements)
        self._parts = pairs.parts
        self.positive, self.negative = (
            torch.cat([pairs.count(side, part, 0.0)[0] for part in pairs.parts], dim=1)
            for side in (POSITIVES, NEGATIVES)
        )

    def changes(self, moved: Tensor) -> tuple[Tensor, Tensor]:
        """Return by how much the ranks of positives (b, P) and negatives (b, N) change when the
        positives move to the scores ``moved`` (b, P)."""
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
        ordered = moved.sort(1).values
        own_change = _at_least(ordered, moved) + _at_least(self._ascending, moved)
        own_change -= self.positive + self.negative
        overtaken = torch.searchsorted(self._own, self.negatives, right=True)
        overtaken -= torch.searchsorted(ordered, self.negatives, right=True)
        return own_change, overtaken.to(moved.dtype)


def _at_least(ascending: Tensor, bounds: Tensor) -> Tensor:
    """Return how many items of each ascending row (b, n) are at or above bounds (b, m)."""
    return (ascending.shape[1] - torch.searchsorted(ascending, bounds)).to(bounds.dtype)
