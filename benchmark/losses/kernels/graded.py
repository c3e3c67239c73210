"""NDCG of several levels of relevance: the sum of a loss of ranks for each level."""

from dataclasses import replace

import torch
from torch import Tensor

from benchmark.losses.kernels.measures import LevelGain
from benchmark.losses.kernels.ranking import SoftRanks
from benchmark.losses.kernels.relation import Relation


def graded_losses(
    ranks: SoftRanks,
    scores: Tensor,
    relation: Relation,
    scale: float,
    include_query: bool,
    gradient: bool,
) -> tuple[Tensor, Tensor | None]:
    """Return 1 - NDCG of each query (Q,), and the derivative (Q, R) of ``scale`` x their sum.

    An item of level l has the gain 2^l - 1 (Ramzi et al., TPAMI 2025); the finest of L levels is L.
    The rank of an item counts those of its level or above as positives, the others as negatives.
    """
    if not relation.coarser:
        return ranks.losses(scores, relation, scale, include_query, gradient)
    levels = [relation, *(level.relation for level in relation.coarser)]
    gains = [2.0**number - 1.0 for number in range(len(levels), 0, -1)]
    counts = [level.counts(include_query) for level in levels]
    numbers = torch.arange(1, relation.references + 1, dtype=scores.dtype, device=scores.device)
    discounts = torch.cat([scores.new_zeros(1), torch.log2(1.0 + numbers).reciprocal().cumsum(0)])
    sums = [discounts[count] for count in counts]
    ideal = gains[0] * sums[0]
    for gain, more, fewer in zip(gains[1:], sums[1:], sums[:-1], strict=True):
        ideal = ideal + gain * (more - fewer)
    finest = relation.queries, relation.references
    ids = [tuple(torch.full((n,), -1 - i, device=scores.device) for i, n in enumerate(finest))]
    ids += [(level.of_queries, level.of_references) for level in relation.coarser]
    values, derivative = counts[0].sign() * (1.0 - len(levels)), None
    for level, gain, (of_queries, of_references) in zip(levels, gains, ids, strict=True):
        part = replace(ranks, measure=LevelGain(gain / ideal, of_queries, of_references))
        losses, slope = part.losses(scores, level, scale, include_query, gradient)
        values = values + losses
        if slope is not None:
            derivative = slope if derivative is None else derivative.add_(slope)
    return values, derivative
