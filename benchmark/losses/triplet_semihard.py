"""Triplet loss with semi-hard triplets, from pytorch-metric-learning."""

from __future__ import annotations

from dataclasses import dataclass

from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.pml import LibraryLoss


@LOSSES.register(
    "triplet_semihard",
    display="Triplet (semi-hard)",
    paper="Schroff et al., CVPR 2015",
    kind="pair",
)
class TripletSemihard(LibraryLoss):
    """Mean of [d(a, p) - d(a, n) + margin]+, Euclidean d, over semi-hard triplets that are not 0.

    A triplet is semi-hard when its negative is farther than its positive, by less than the margin.
    Mining looks at every triplet at once: with a memory of M that takes B x (B + M)^2 entries.
    Collapsed embeddings have no semi-hard triplet, because no distance is farther than another:
    there the loss is exactly 0, and so is its gradient. A batch without a positive is an error.
    """

    needs_positives = True

    @dataclass(frozen=True, kw_only=True)
    class Config:
        margin: float = option(0.1, above=0.0, help="required gap between the distances")

    def make(self):
        from pytorch_metric_learning import losses, miners

        self.miner = miners.TripletMarginMiner(
            margin=self.config.margin, type_of_triplets="semihard"
        )
        return losses.TripletMarginLoss(margin=self.config.margin)

    def mine(self, embeddings, labels, references=None, reference_labels=None):
        return self.miner(embeddings, labels, references, reference_labels)
