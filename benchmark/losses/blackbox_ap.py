"""BlackBoxAP: exact ranks, differentiated by perturbing the ranker."""

from collections.abc import Callable

import torch
from torch import Tensor

from benchmark.losses import implements
from benchmark.losses.base import RankingLoss
from benchmark.losses.kernels.ranking import AveragePrecision
from benchmark.losses.kernels.relation import (
    Group,
    at_or_above,
    block_elements,
    block_losses,
    chunks,
    count_at_least,
)

# From this many positives on, sorting takes less time than comparing pairs; the counts are equal.
SORT_FROM_POSITIVES = 64

# Ranks of positives (b, P) among themselves and among negatives (b, N), and a function. It takes
# the moved scores of the positives (b, P), and returns by how much the ranks of positives (b, P)
# and negatives (b, N) change.
Ranks = tuple[Tensor, Tensor, Callable[[Tensor], tuple[Tensor, Tensor]]]


@implements("blackbox_ap")
class BlackBoxAP(RankingLoss):
    """Mean over queries of the exact 1 - AP; the gradient is a difference quotient of the ranker.

    Ranks are divided by the number R of ranked items. With g = d loss / d ranks, the gradient with
    respect to the scores s is (ranks(s + lambda g) - ranks(s)) / lambda. g is 0 for negatives, so
    the rank of a negative changes by the number of positives that overtake it. Few positives are
    compared pair by pair, in time O(sum of |P| x R). Many are sorted once, in time O(Q x R log R).
    Memory O(Q x R). Tied items share the worst of their ranks, so that collapsed embeddings do not
    count as ranked.

    A margin disturbs the scores first: positives lose and negatives gain margin/2 x |standard
    normal|. The normal numbers are drawn in every call, as in the published code of ROADMAP. With
    ``fixed_margin`` all lose or gain margin/2, as in the paper of BlackBoxAP. g is the derivative
    of the mean loss, so a factor on the loss scales the gradient.

    Plain formula: ``blackbox_ap`` of ``conformance.formulas``.
    """

    def rank(self, scores, relation, scale, gradient, generator):
        include = self.config.include_query
        step = self.config.lambda_val
        ranked = relation.references - (relation.own and not include)
        elements = block_elements(scores.device)
        measure = AveragePrecision()
        every = slice(None)
        # what negatives gain and positives lose (Q, R)
        noise = None
        half = self.config.margin / 2
        if half and self.config.fixed_margin:
            noise = scores.new_full((1, 1), half).expand_as(scores)
        elif half:
            noise = torch.randn(
                scores.shape,
                generator=generator,
                dtype=scores.dtype,
                device=scores.device if generator is None else generator.device,
            )
            noise = noise.abs_().mul_(half).to(scores.device)

        def read(block: Group) -> tuple[Tensor, Tensor]:
            rows = scores[block.queries]
            positives = rows.gather(1, block.columns)
            if noise is not None:
                push = noise[block.queries]
                rows += push
                positives -= push.gather(1, block.columns)
            return rows, positives

        def evaluate(block: Group, positives: Tensor, negatives: Tensor) -> tuple[Tensor, ...]:
            count = positives.shape[1]
            ranks = by_sorting if count >= SORT_FROM_POSITIVES else by_pairs
            among, behind, changes = ranks(positives, negatives, elements)
            rank = among + behind
            losses = 1.0 - measure.gain(among, rank, block, every) / count
            if not gradient:
                return (losses,)
            factor = step * scale * ranked / count
            _, falls = measure.slopes(among, rank, factor, block, every)
            of_positives, of_negatives = changes(positives + falls)
            quotient = step * ranked
            return losses, of_positives.div_(quotient), of_negatives.div_(quotient)

        blocks = relation.blocks(include, elements, linear=(SORT_FROM_POSITIVES, elements))
        values, derivative = block_losses(scores, relation, blocks, read, evaluate, gradient)
        # comparisons hide NaN; a NaN anywhere in a row must show in its value
        return values + scores.sum(1) * 0.0, derivative


def by_pairs(positives: Tensor, negatives: Tensor, elements: int) -> Ranks:
    """Return the ranks of positives (b, P) and negatives (b, N) by comparing pairs: O(P x N)."""
    longest = max(positives.shape[1], negatives.shape[1])
    parts = chunks(positives.shape[1], len(positives) * longest, elements)

    def ranks_among(items: Tensor) -> Tensor:
        """Return how many of ``items`` (b, n) are at or above each positive (b, P)."""
        counts = []
        for part in parts:
            counts.append(count_at_least(items.unsqueeze(1), positives[:, part].unsqueeze(2)))
        return torch.cat(counts, dim=1)

    among = ranks_among(positives)
    behind = ranks_among(negatives)

    def changes(moved: Tensor) -> tuple[Tensor, Tensor]:
        of_negatives = torch.zeros_like(negatives)
        of_positives = torch.empty_like(moved)
        for part in parts:
            before = positives[:, part].unsqueeze(2)
            after = moved[:, part].unsqueeze(2)
            overtaken = torch.ge(negatives.unsqueeze(1), before, out=moved.new_empty(0))
            overtaken -= torch.ge(negatives.unsqueeze(1), after, out=moved.new_empty(0))
            of_negatives += overtaken.sum(1)
            of_positives[:, part] = count_at_least(moved.unsqueeze(1), after) - among[:, part]
            of_positives[:, part] -= overtaken.sum(2)
        return of_positives, of_negatives

    return among, behind, changes


def by_sorting(positives: Tensor, negatives: Tensor, elements: int) -> Ranks:
    """Return the same ranks by sorting: time O((P + N) log(P + N))."""
    ascending = positives.sort(1).values
    ascending_negatives = negatives.sort(1).values
    among = at_or_above(ascending, positives)
    behind = at_or_above(ascending_negatives, positives)

    def changes(moved: Tensor) -> tuple[Tensor, Tensor]:
        ordered = moved.sort(1).values
        of_positives = at_or_above(ordered, moved) + at_or_above(ascending_negatives, moved)
        overtaken = torch.searchsorted(ascending, negatives, right=True)
        overtaken -= torch.searchsorted(ordered, negatives, right=True)
        return of_positives - (among + behind), overtaken.to(moved.dtype)

    return among, behind, changes
