"""Losses of ranks: ranks of positives, what is made of them, and the derivative.

A loss is given by two things: the steps that count how many items rank above a positive
(``benchmark.losses.kernels.steps``), and what is made of the ranks, a ``Measure``.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from benchmark.losses.kernels.relation import Group, Relation, block_elements, block_losses
from benchmark.losses.kernels.steps import (
    LARGE_BLOCK,
    MANY_POSITIVES,
    Pairs,
    PanelGrid,
    Panels,
    StepFunction,
)

# the two sides of a block
POSITIVES = 0
NEGATIVES = 1


class Measure:
    """A loss of each query of a block: 1 - (sum over its positives of their gain) / ``best``.

    ``among`` (b, p) is the rank of a positive among the positives, ``rank`` (b, p) among all items.
    They belong to the columns ``part`` of the block's positives (b, P).
    """

    # Whether a gain depends on other positives of the query: ``part`` has to be all then.
    whole = False

    def best(self, block: Group) -> float:
        """Return the sum of the gains of a perfect ranking: the number of positives."""
        return block.columns.shape[1]

    def gain(self, among: Tensor, rank: Tensor, block: Group, part: slice) -> Tensor:
        """Return the summed gain of these positives (b,)."""
        raise NotImplementedError

    def fall(self, rank: Tensor, block: Group, part: slice) -> Tensor:
        """Return how much the gain of each positive (b, p) falls with its rank, if with no more."""
        raise NotImplementedError

    def slopes(
        self, among: Tensor, rank: Tensor, scale: float, block: Group, part: slice
    ) -> tuple[Tensor, Tensor]:
        """Return how ``scale`` x gain (b, p) grows with positives above, falls with negatives."""
        fall = self.fall(rank, block, part) * scale
        return -fall, fall


class AveragePrecision(Measure):
    """The gain of a positive is the precision at its rank: rank among positives / rank.

    Plain formula: ``_precision`` of ``conformance.formulas``.
    """

    def gain(self, among, rank, block, part):
        return (among / rank).sum(1)

    def slopes(self, among, rank, scale, block, part):
        fall = scale * among / rank.square()
        return scale / rank - fall, fall


class Recall(Measure):
    """Mean over k of the soft number of positives among the first k / min(k, positives).

    A positive counts sigmoid((k - rank) / temperature). ``saturating``: an own query is ranked but
    is not a positive, and at most k count for k (Patel et al., Eq. 7). Plain formulas: ``_recall``
    of ``conformance.formulas``, and ``recall_at_k`` there for ``saturating``.
    """

    def __init__(self, ks: Sequence[int], temperatures: Sequence[float], saturating: bool = False):
        self.ks = ks
        self.temperatures = temperatures
        self.whole = saturating

    def best(self, block):
        return 1.0

    def gain(self, among, rank, block, part):
        total = rank.new_zeros(len(rank))
        for k, _, weight, hits in self._hits(rank, block):
            hits = hits.sum(1)
            total = total + (hits.clamp(max=k) if self.whole else hits) * weight
        return total

    def fall(self, rank, block, part):
        total = rank.new_zeros(())
        for k, temperature, weight, hits in self._hits(rank, block):
            slope = (hits - hits.square()) * (weight / temperature)
            if self.whole:
                slope *= hits.sum(1, keepdim=True) < k
            total = total + slope
        return pad(total, (self._own(block), 0))

    def _own(self, block: Group) -> int:
        """Return how many columns in front are the query and no positive."""
        return int(self.whole and block.with_query)

    def _hits(self, rank: Tensor, block: Group) -> Iterator[tuple[int, float, float, Tensor]]:
        """Yield k, its temperature, its weight, and by how much each positive is within k."""
        rank = rank[:, self._own(block) :]
        positives = block.columns.shape[1] - self._own(block)
        for k, temperature in zip(self.ks, self.temperatures, strict=True):
            weight = 1.0 / (min(k, positives) * len(self.ks))
            yield k, temperature, weight, torch.sigmoid((k - rank) / temperature)


class DiscountedGain(Measure):
    """The gain of a positive is 1 / log2(1 + rank): NDCG of positives that are equally relevant.

    Plain formula: ``_gain`` of ``conformance.formulas``.
    """

    def best(self, block):
        return sum(1.0 / math.log2(1 + rank) for rank in range(1, block.columns.shape[1] + 1))

    def gain(self, among, rank, block, part):
        return (math.log(2) / torch.log1p(rank)).sum(1)

    def fall(self, rank, block, part):
        return math.log(2) / ((1.0 + rank) * torch.log1p(rank).square())


@dataclass(frozen=True)
class LevelGain(DiscountedGain):
    """The share of one level of relevance in NDCG.

    Positives of a finer level have weight 0. ``weight`` (Q,) is the gain of this level over the
    ideal sum of each query. ``ids`` are those of the relation of the level. Plain formula for a
    single level: ``_gain`` of ``conformance.formulas``.
    """

    weight: Tensor
    ids: tuple[Tensor, Tensor] | None

    def best(self, block):
        return 1.0

    def gain(self, among, rank, block, part):
        return (math.log(2) / torch.log1p(rank)).mul_(self._weights(block, part)).sum(1)

    def fall(self, rank, block, part):
        return super().fall(rank, block, part) * self._weights(block, part)

    def _weights(self, block: Group, part: slice) -> Tensor:
        weight = self.weight[block.queries]
        queries = block.queries
        if self.ids is None:  # the finest level
            return weight.unsqueeze(1)
        of_queries, of_references = self.ids
        exact = of_references[block.columns[:, part]] != of_queries[queries].unsqueeze(1)
        return weight.unsqueeze(1) * exact


@dataclass(frozen=True)
class MeanPenalty(Measure):
    """Mean over the positives of a penalty of the rank; ``slope`` is its derivative.

    Plain formula: ``pnp`` of ``conformance.formulas``.
    """

    penalty: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]

    def gain(self, among, rank, block, part):
        return (1.0 - self.penalty(rank)).sum(1)

    def fall(self, rank, block, part):
        return self.slope(rank)


@dataclass(frozen=True)
class SoftRanks:
    """A loss of ranks; ``positives`` and ``negatives`` count both kinds of items above a positive.

    Scores are divided by ``tau`` first. Time O(sum of |P| x R), memory O(Q x R); on a CPU queries
    with many positives take O(|P| + R) each (``benchmark.losses.kernels.steps.Panels``).
    """

    tau: float
    positives: StepFunction
    negatives: StepFunction
    measure: Measure

    def losses(
        self, scores: Tensor, relation: Relation, scale: float, include_query: bool, gradient: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Return the loss of each query (Q,), and the derivative (Q, R) of ``scale`` x their sum.

        Queries without a positive have 0. Without ``gradient`` the derivative is None.
        """
        if relation.coarser and isinstance(self.measure, DiscountedGain):
            return self._graded(scores, relation, scale, include_query, gradient)
        elements = block_elements(scores.device)
        steps = (self.positives, self.negatives)
        most = sys.maxsize if self.measure.whole else elements
        grid = PanelGrid.over(scores, relation, self.tau, self.negatives.bend)
        expansions = () if grid is None else [step.expand(grid) for step in steps]

        def read(block: Group) -> tuple[Tensor, Tensor]:
            rows = scores[block.queries] / self.tau
            return rows, rows.gather(1, block.columns)

        def evaluate(block: Group, *sides: Tensor) -> tuple[Tensor, ...]:
            best = self.measure.best(block)
            step = scale / (best * self.tau) if gradient else None
            if grid is not None and sides[POSITIVES].shape[1] >= MANY_POSITIVES:
                counter: Pairs | Panels = Panels(sides, expansions, grid)
            else:
                counter = Pairs(sides, steps, most)
            gain, *slopes = self._gain(counter, block, sides, step)
            return 1.0 - gain / best, *slopes

        linear = None if grid is None else (MANY_POSITIVES, LARGE_BLOCK)
        blocks = relation.blocks(include_query, elements, linear)
        return block_losses(scores, relation, blocks, read, evaluate, gradient)

    def _gain(
        self, counter: Pairs | Panels, block: Group, sides: Sequence[Tensor], scale: float | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the summed gain of each query (b,), and minus ``scale`` x its derivatives with
        respect to the scores of positives (b, P) and negatives (b, N); 0 without ``scale``."""
        dtype = sides[POSITIVES].dtype
        of_positives, of_negatives = (torch.zeros_like(x, dtype=counter.dtype) for x in sides)
        gain = of_positives.new_zeros(len(of_positives))
        base = 1.0 - self.positives.at_tie  # a positive is counted among the items above itself
        for part in counter.parts:
            among, pull = counter.count(POSITIVES, part, base)
            rank, push = counter.count(NEGATIVES, part, among)
            gain += self.measure.gain(among, rank, block, part)
            if scale is None:
                continue
            grows, falls = self.measure.slopes(among, rank, scale, block, part)
            assert push is not None  # the step of negatives has a slope, or nothing is learned
            change, anchors = push(falls)
            of_negatives += change
            of_anchors = -anchors
            if pull is not None:
                change, anchors = pull(grows)
                of_positives -= change
                of_anchors += anchors
            of_positives[:, part] += of_anchors
        return gain.to(dtype), of_positives.to(dtype), of_negatives.to(dtype)

    def _graded(
        self, scores: Tensor, relation: Relation, scale: float, include_query: bool, gradient: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Return the same of NDCG with several levels: the sum of a loss of ranks for each level.

        An item of level l has the gain 2^l - 1 (Ramzi et al., TPAMI 2025); the finest of L levels
        is L. The rank of an item counts those of its level or above as positives, the others as
        negatives.
        """
        levels = [replace(relation, coarser=()), *relation.coarser]
        gains = [2.0**number - 1.0 for number in range(len(levels), 0, -1)]
        counts = [level.counts(include_query) for level in levels]
        ranks = torch.arange(1, relation.references + 1, dtype=scores.dtype, device=scores.device)
        discounts = torch.cat([scores.new_zeros(1), torch.log2(1.0 + ranks).reciprocal().cumsum(0)])
        sums = [discounts[count] for count in counts]
        ideal = gains[0] * sums[0]
        for gain, more, fewer in zip(gains[1:], sums[1:], sums[:-1], strict=True):
            ideal = ideal + gain * (more - fewer)
        values = counts[0].sign() * (1.0 - len(levels))
        derivative = None
        for level, gain in zip(levels, gains, strict=True):
            part = replace(self, measure=LevelGain(gain / ideal, level.ids))
            losses, slope = part.losses(scores, level, scale, include_query, gradient)
            values = values + losses
            if slope is not None:
                derivative = slope if derivative is None else derivative.add_(slope)
        return values, derivative
