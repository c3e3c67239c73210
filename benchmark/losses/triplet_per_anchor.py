"""Triplet loss with one sampled triplet for each anchor, as Roth and Brattoli's code draws it."""

from dataclasses import dataclass

import torch

from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.base import ComparingLoss, widened
from benchmark.losses.kernels.relation import Positives


@LOSSES.register(
    "triplet_per_anchor",
    display="Triplet (one per anchor)",
    paper="Schroff et al., CVPR 2015; sampling of Roth et al., ICML 2020",
    stochastic=True,
    kind="pair",
)
class TripletPerAnchor(ComparingLoss):
    """Mean over anchors of [d(a, p) - d(a, n) + margin]+ with squared Euclidean d.

    The positive is drawn among those farther than the nearest negative, the negative among those
    nearer than the farthest positive; where there are none, among all. Anchors without a positive
    are left out. A batch without any is an error, one without negatives costs 0.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config:
        """Hyperparameters."""

        margin: float = option(
            0.2,
            above=0.0,
            help="required gap between squared distances",
            search={"times": [0.1, 10.0]},
        )

    def compare(self, embeddings, labels, others, other_labels, own, generator):
        Positives.from_labels(
            labels, other_labels, torch.device("cpu"), own=own
        ).require_positives()
        with torch.autocast(embeddings.device.type, enabled=False):
            queries = widened(embeddings)
            labels = labels.to(queries.device)
            pool, pool_labels = (queries, labels) if own else (queries[:0], labels[:0])
            if others is not None:
                pool = torch.cat([pool, others.to(queries.dtype)])
                pool_labels = torch.cat([pool_labels, other_labels.to(queries.device)])
            lengths = queries.square().sum(1)[:, None] + pool.square().sum(1)
            distances = (lengths - 2 * queries @ pool.T).clamp(min=0)
            same = labels[:, None] == pool_labels
            positive = same.clone()
            if own:
                positive.fill_diagonal_(False)
            anchors = (positive.any(1) & ~same.all(1)).nonzero()[:, 0]
            zero = 0.0 * (queries.sum() + pool.sum())  # NaN for rows that no triplet may draw
            if not len(anchors):
                return zero
            distances, positive, negative = distances[anchors], positive[anchors], ~same[anchors]
            positives, negatives = _draw(distances.detach(), positive, negative, generator)
            rows = torch.arange(len(anchors), device=queries.device)
            gaps = distances[rows, positives] - distances[rows, negatives]
            return (gaps + self.config.margin).clamp(min=0).mean() + zero


def _draw(distances, positive, negative, generator):
    """Return the columns (A,) of the positives and negatives of the anchors of ``distances``."""
    infinity = torch.inf
    nearest = distances.masked_fill(~negative, infinity).amin(1, keepdim=True)
    farthest = distances.masked_fill(~positive, -infinity).amax(1, keepdim=True)
    columns = []
    for allowed, hard in (
        (positive, positive & (distances > nearest)),
        (negative, negative & (distances < farthest)),
    ):
        among = torch.where(hard.any(1, keepdim=True), hard, allowed)
        drawn = torch.multinomial(among.double().cpu(), 1, generator=generator)[:, 0]
        columns.append(drawn.to(distances.device))
    return columns
