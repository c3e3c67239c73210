"""Weighted sums of score losses, described as data: names, weights, hyperparameters."""

from torch import nn

from benchmark.losses import create_loss
from benchmark.losses.base import RankingLoss, ScoreLoss


class Composite(ScoreLoss):
    """Sum of weighted score losses on one score matrix.

    Subclasses define ``Config`` and ``composition``.
    """

    def __init__(self, config, **sizes):
        super().__init__(config, **sizes)
        self.weights = [weight for weight, *_ in self.composition()]
        self.losses = nn.ModuleList(
            create_loss(name, **sizes, **setting) for _, name, setting in self.composition()
        )
        self.hierarchical = any(loss.hierarchical for loss in self.losses)

    def composition(self) -> list[tuple[float, str, dict]]:
        """Return weight, registered name and hyperparameters of each component."""
        raise NotImplementedError

    def query_losses(self, scores, targets, *, self_pairs=False, generator=None):
        """Return 1 - AP (Q,) of the ranking loss among the components; see ``RankingLoss``."""
        ranking = next(loss for _, loss in self.components() if isinstance(loss, RankingLoss))
        return ranking.query_losses(scores, targets, self_pairs=self_pairs, generator=generator)

    def components(self):
        found = []
        for weight, loss in zip(self.weights, self.losses, strict=True):
            assert isinstance(loss, ScoreLoss)
            found += [(weight * inner, component) for inner, component in loss.components()]
        return found
