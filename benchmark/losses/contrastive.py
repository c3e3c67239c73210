"""Contrastive loss, from pytorch-metric-learning."""

from __future__ import annotations

from dataclasses import dataclass

from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.pml import LibraryLoss


@LOSSES.register(
    "contrastive", display="Contrastive", paper="Hadsell et al., CVPR 2006", kind="pair"
)
class Contrastive(LibraryLoss):
    """[d - pos_margin]+ of positive and [neg_margin - d]+ of negative pairs, Euclidean d.

    Each term is averaged over its non-zero pairs.

    Each term stands without the other: on a batch with no positive pair, negatives are still pushed
    apart.
    """

    @dataclass(frozen=True, kw_only=True)
    class Config:
        pos_margin: float = option(
            0.0, at_least=0.0, help="positive pairs closer than this cost nothing"
        )
        neg_margin: float = option(
            0.5, at_least=0.0, help="negative pairs farther than this cost nothing"
        )

    def make(self):
        from pytorch_metric_learning import losses

        return losses.ContrastiveLoss(
            pos_margin=self.config.pos_margin, neg_margin=self.config.neg_margin
        )
