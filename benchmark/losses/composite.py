"""Weighted sums of score losses, described as data: names, weights, hyperparameters."""

from __future__ import annotations

from torch import nn

from benchmark.losses import create_loss
from benchmark.losses.base import RankingLoss, ScoreLoss


class Composite(ScoreLoss):
    """Sum of weighted score losses on one score matrix.

    Subclasses define ``Config`` and ``composition``: ``[(weight, loss name, hyperparameters), ...]``.
    """

    def __init__(self, config, **sizes):
        super().__init__(config, **sizes)
        weights, names, settings = zip(*self.composition(), strict=True)
        self.weights = weights
        self.losses = nn.ModuleList(
            create_loss(name, **sizes, **setting)
            for name, setting in zip(names, settings, strict=True)
        )

    def composition(self) -> list[tuple[float, str, dict]]:
        """Returns weight, registered name and hyperparameters of each part, from ``self.config``."""
        raise NotImplementedError

    def per_query(self, scores, targets, *, self_pairs=False, generator=None):
        """Returns 1 - AP (Q,) as the ranking loss among the parts sees it; see ``RankingLoss.per_query``."""
        ranking = next(part for _, part in self.parts() if isinstance(part, RankingLoss))
        return ranking.per_query(scores, targets, self_pairs=self_pairs, generator=generator)

    def parts(self):
        return [
            (weight * inner, part)
            for weight, loss in zip(self.weights, self.losses, strict=True)
            for inner, part in loss.parts()
        ]
