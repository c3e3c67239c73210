"""What losses make of ranks: average precision, recall, discounted gain, penalties."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from benchmark.losses.kernels.relation import Group


class Measure(ABC):
    """A loss of each query of a block: 1 - (sum over its positives of their gain) / ``best``.

    ``among`` (b, p) is the rank of a positive among the positives, ``rank`` (b, p) among all items.
    They belong to the columns ``part`` of the block's positives (b, P).
    """

    @property
    def whole(self) -> bool:
        """Whether a gain depends on other positives of the query: ``part`` has to be all then."""
        return False

    @abstractmethod
    def best(self, block: Group) -> float:
        """Return the sum of the gains of a perfect ranking."""

    @abstractmethod
    def gain(self, among: Tensor, rank: Tensor, block: Group, part: slice) -> Tensor:
        """Return the summed gain of these positives (b,)."""

    @abstractmethod
    def slopes(
        self, among: Tensor, rank: Tensor, scale: float, block: Group, part: slice
    ) -> tuple[Tensor, Tensor]:
        """Return how ``scale`` x gain (b, p) grows with positives above, falls with negatives."""


class AveragePrecision(Measure):
    """The gain of a positive is the precision at its rank: rank among positives / rank."""

    def best(self, block):
        return block.columns.shape[1]

    def gain(self, among, rank, block, part):
        return (among / rank).sum(1)

    def slopes(self, among, rank, scale, block, part):
        fall = scale * among / rank.square()
        return scale / rank - fall, fall


class RankMeasure(Measure):
    """A measure whose gain depends on the rank alone, whatever kind of item is above."""

    @abstractmethod
    def fall(self, rank: Tensor, block: Group, part: slice) -> Tensor:
        """Return how much the gain of each positive (b, p) falls with its rank."""

    def slopes(self, among, rank, scale, block, part):
        fall = self.fall(rank, block, part) * scale
        return -fall, fall


@dataclass(frozen=True)
class Recall(RankMeasure):
    """Mean over k of the soft number of positives among the first k / min(k, positives).

    A positive counts sigmoid((k - rank) / temperature). ``saturating``: an own query is ranked but
    is no positive, and at most k count for k (Patel et al., Eq. 7).
    """

    ks: tuple[int, ...]
    temperatures: tuple[float, ...]
    saturating: bool = False

    @property
    def whole(self) -> bool:
        return self.saturating

    def best(self, block):
        return 1.0

    def gain(self, among, rank, block, part):
        rank = rank[:, self._own(block) :]
        total = rank.new_zeros(len(rank))
        for k, temperature, weight in self._cutoffs(block):
            hits = torch.sigmoid((k - rank) / temperature).sum(1)
            total = total + (hits.clamp(max=k) if self.saturating else hits) * weight
        return total

    def fall(self, rank, block, part):
        rank = rank[:, self._own(block) :]
        total = torch.zeros_like(rank)
        for k, temperature, weight in self._cutoffs(block):
            hits = torch.sigmoid((k - rank) / temperature)
            slope = (hits - hits.square()) * (weight / temperature)
            if self.saturating:
                slope *= hits.sum(1, keepdim=True) < k
            total = total + slope
        return pad(total, (self._own(block), 0))

    def _own(self, block: Group) -> int:
        """Return how many columns in front are the query and no positive."""
        return int(self.saturating and block.with_query)

    def _cutoffs(self, block: Group) -> Iterator[tuple[int, float, float]]:
        positives = block.columns.shape[1] - self._own(block)
        for k, temperature in zip(self.ks, self.temperatures, strict=True):
            yield k, temperature, 1.0 / (min(k, positives) * len(self.ks))


class DiscountedGain(RankMeasure):
    """The gain of a positive is 1 / log2(1 + rank): NDCG of positives that are equally relevant."""

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
    ideal sum of each query; ``of_queries`` (Q,) and ``of_references`` (R,) are equal where the
    relevance is that of a finer level.
    """

    weight: Tensor
    of_queries: Tensor
    of_references: Tensor

    def best(self, block):
        return 1.0

    def gain(self, among, rank, block, part):
        return (math.log(2) / torch.log1p(rank)).mul_(self._weights(block, part)).sum(1)

    def fall(self, rank, block, part):
        return super().fall(rank, block, part) * self._weights(block, part)

    def _weights(self, block: Group, part: slice) -> Tensor:
        queries = block.queries.unsqueeze(1)
        exact = self.of_references[block.columns[:, part]] != self.of_queries[queries]
        return self.weight[queries] * exact


@dataclass(frozen=True)
class MeanPenalty(RankMeasure):
    """Mean over the positives of a penalty of the rank; ``slope`` is its derivative."""

    penalty: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]

    def best(self, block):
        return block.columns.shape[1]

    def gain(self, among, rank, block, part):
        return (1.0 - self.penalty(rank)).sum(1)

    def fall(self, rank, block, part):
        return self.slope(rank)
