"""Losses of ranks: ranks of positives, what is made of them, and the derivative.

A loss is given by two things: the steps that count how many items rank above a positive
(``benchmark.losses.kernels.steps``), and what is made of the ranks
(``benchmark.losses.kernels.measures``).
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmark.losses.kernels.blocks import block_elements, block_losses
from benchmark.losses.kernels.measures import Measure
from benchmark.losses.kernels.panels import LARGE_BLOCK, MANY_POSITIVES, Grid, Panels
from benchmark.losses.kernels.relation import Group, Relation
from benchmark.losses.kernels.steps import Pairs, Step

POSITIVES, NEGATIVES = 0, 1  # the two sides of a block


@dataclass(frozen=True)
class SoftRanks:
    """A loss of ranks; ``positives`` and ``negatives`` count both kinds of items above a positive.

    Scores are divided by ``tau`` first. Time O(sum of |P| x R), memory O(Q x R); on a CPU queries
    with many positives take O(|P| + R) each (``benchmark.losses.kernels.panels``).
    """

    tau: float
    positives: Step
    negatives: Step
    measure: Measure

    def losses(
        self, scores: Tensor, relation: Relation, scale: float, include_query: bool, gradient: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Return the loss of each query (Q,), and the derivative (Q, R) of ``scale`` x their sum.

        Queries without a positive have 0. Without ``gradient`` the derivative is None.
        """
        elements, steps = block_elements(scores.device), (self.positives, self.negatives)
        most = sys.maxsize if self.measure.whole else elements
        grid = Grid.over(scores, relation, self.tau, self.negatives.bend)
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
